"""Relays: programs at remote sites that serve the site's agents over a few connections to Stoker."""

ENTRY_GROUP = "stoker.commands.relay"
