"""The only place where the rooms are joined: one process, from settings to answering."""

from stoker.serve.installation import admin_file, has_secret, lock, open_store, site_secret
from stoker.serve.joining import Joined, join, sweep
from stoker.serve.running import listen, run

__all__ = [
    "Joined",
    "admin_file",
    "has_secret",
    "join",
    "listen",
    "lock",
    "open_store",
    "run",
    "site_secret",
    "sweep",
]
