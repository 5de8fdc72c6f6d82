"""Queries about stacks: outputs, attributes and exports."""
