"""Stored hooks, which agents fetch for the configs that name them."""
