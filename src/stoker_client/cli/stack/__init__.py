"""Stacks: create, change, look at and delete them."""
