"""Parameters: their schemas in a template, and the values bound to them."""
