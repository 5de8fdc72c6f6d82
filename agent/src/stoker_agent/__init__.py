"""
Stoker's agent: fetches the runs of this server, executes them through hooks and reports their results.

The agent uses the standard library only and runs on Python 3.8 or newer, so one zipapp runs on any server.
"""

__version__ = "0.1.0"
