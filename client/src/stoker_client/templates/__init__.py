"""Collects the files of a template and its environments on the user's machine, as heatclient does."""
