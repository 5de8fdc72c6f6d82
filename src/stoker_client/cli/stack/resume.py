"""Resume suspended stacks."""

from stoker_client.cli.stack._action_command import action_command

command = action_command("resume", "RESUME")
