"""The ``stoker`` command. Each file here is one command, each folder a group; names that start with ``_`` are helpers.

A command's file holds a click command named ``command``; its module docstring is the help, whose first line the
groups show without importing the file.
"""
