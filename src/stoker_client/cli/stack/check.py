"""Check whether the resources of stacks are what they should be."""

from stoker_client.cli.stack._action_command import action_command

command = action_command("check", "CHECK")
