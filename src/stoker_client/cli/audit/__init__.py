"""The audit log: who wanted what on which server, and what was decided."""
