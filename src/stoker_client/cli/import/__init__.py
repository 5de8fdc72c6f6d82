"""Take stacks over from other services."""
