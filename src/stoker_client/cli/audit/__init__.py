"""The audit log: who requested what, and what was decided."""
