"""
Stoker's agent: fetches what this server has to run, runs it through hooks, reports what came of it.

Standard library only, Python 3.8 or newer, so that one zipapp runs on any server.
"""

__version__ = "0.1.0"
