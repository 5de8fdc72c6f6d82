"""What /openapi.json says of the routes: one module a noun, as beside them their handlers."""
