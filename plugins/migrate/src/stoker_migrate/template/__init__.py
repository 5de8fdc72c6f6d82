"""Rewrites Heat templates for servers that exist: enrolled servers take the place of servers of a cloud."""
