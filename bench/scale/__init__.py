"""
Measurements of one Stoker with thousands of agents, which ``python -m bench.scale`` runs.

Each starts a Stoker and a swarm of its own on this machine, and removes both with their database.
"""
