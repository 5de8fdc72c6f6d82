"""Queries of the tables of cloud objects and of delegations."""
