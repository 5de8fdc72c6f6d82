"""Suspend stacks: run their deployments for this action."""

from stoker_client.cli.stack._action_command import action_command

command = action_command("suspend", "SUSPEND")
