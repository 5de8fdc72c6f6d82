"""Application credentials: secrets of programs, that do what you let them."""
