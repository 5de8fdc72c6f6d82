"""The API for relays: polls of many agents in one request, and the install script of a relay's site."""
