"""Suspend stacks: run what their deployments have for that."""

from stoker_client.cli.stack._action_command import action_command

command = action_command("suspend", "SUSPEND")
