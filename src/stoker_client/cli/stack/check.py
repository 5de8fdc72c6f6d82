"""Check the actual state of stacks' resources."""

from stoker_client.cli.stack._action_command import action_command

command = action_command("check", "CHECK")
