"""Takes templates and stacks over from another Heat."""
