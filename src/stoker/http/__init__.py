"""The faces, each a ROUTES table and one file per noun. The only room that knows the web framework."""
