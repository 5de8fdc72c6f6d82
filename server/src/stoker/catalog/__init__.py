"""The catalog of typed, versioned configs: the format of its entries, and the entries that Stoker ships."""
