"""The relay: serves Stoker's agents at a remote site over a few connections to the central Stoker."""

__version__ = "0.1.0"
