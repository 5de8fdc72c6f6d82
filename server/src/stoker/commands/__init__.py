"""Commands of the server, found by the command line through entry points."""
