"""Stoker's client: a typed library over HTTP, and the ``stoker`` command. Shares no code with the server."""
