"""Software configs: scripts and their inputs and outputs, immutable."""
