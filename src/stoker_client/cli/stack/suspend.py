"""Suspend stacks: run what their deployments have for that."""

from stoker_client.cli.stack._acting import acting

command = acting("suspend", "SUSPEND")
