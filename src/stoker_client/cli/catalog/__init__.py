"""The catalog: typed, versioned configs, such as nginx/1."""
