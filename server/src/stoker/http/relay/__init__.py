"""The API for relays: a stream of changed documents, and the install script of a relay's site."""
