"""Snapshots of stacks: take, list, restore and delete them."""
