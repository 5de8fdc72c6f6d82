"""Drift: differences between servers and what deployments left there."""
