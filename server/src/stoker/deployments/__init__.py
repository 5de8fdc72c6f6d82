"""Configs and deployments: what each server runs, who may run it, and what the agents' reports mean."""
