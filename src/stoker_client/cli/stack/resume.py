"""Resume suspended stacks."""

from stoker_client.cli.stack._acting import acting

command = acting("resume", "RESUME")
