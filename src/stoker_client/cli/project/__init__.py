"""Projects: each has its own stacks, configs and servers."""
