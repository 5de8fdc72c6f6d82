"""
A swarm: simulated agents that speak Stoker's agent protocol, many thousands in one process.

``python -m bench.swarm --help`` describes the command, with which operators size a site.
"""

from __future__ import annotations

from bench.swarm.enrollment import enroll_servers
from bench.swarm.swarm import Swarm

__all__ = ["Swarm", "enroll_servers"]
