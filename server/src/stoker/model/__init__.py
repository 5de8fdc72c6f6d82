"""Domain model: frozen dataclasses, enums and errors. Standard library only, no I/O."""
