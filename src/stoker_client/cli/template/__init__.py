"""Templates: whether they hold together, and what may stand in them."""
