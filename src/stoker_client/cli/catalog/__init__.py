"""The catalogue: typed, versioned configs, such as nginx/1."""
