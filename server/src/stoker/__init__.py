"""Stoker's server: software configuration for fleets of servers, as one standalone service."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("stoker-server")
except PackageNotFoundError:  # run from a source tree that was never installed
    VERSION = "0"
