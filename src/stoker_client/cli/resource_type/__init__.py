"""Resource types: what there is, and their properties."""
