"""The drivers: one module for each kind of objects, or for several that one service treats alike."""
