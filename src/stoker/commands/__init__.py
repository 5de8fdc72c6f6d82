"""Commands of the server's own, found by the command line through their entry points."""
