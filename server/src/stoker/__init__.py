"""Stoker's server: software configuration for fleets of servers, as one standalone service."""
