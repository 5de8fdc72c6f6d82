"""Templates: validate them, and list the functions that they may call."""

ENTRY_GROUP = "stoker.commands.template"
