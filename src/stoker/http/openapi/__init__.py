"""Descriptions of the routes for /openapi.json: one module per noun, parallel to the modules of the handlers."""
