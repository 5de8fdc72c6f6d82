"""Check whether the resources of stacks are what they should be."""

from stoker_client.cli.stack._acting import acting

command = acting("check", "CHECK")
