"""
The HTTP APIs, each with a ROUTES table and one module per noun. Only this package and ``serve`` use the web framework.
"""
