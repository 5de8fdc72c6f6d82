"""/openapi.json, generated from the routes and the contracts of their handlers."""
