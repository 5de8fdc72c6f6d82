"""Servers: those that agents run on."""
