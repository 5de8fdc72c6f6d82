"""The nouns: frozen dataclasses, enums and errors. Standard library only, no I/O."""
