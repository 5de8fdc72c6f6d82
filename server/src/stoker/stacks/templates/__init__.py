"""Templates before their application: preparation, checks, previews and validation."""
