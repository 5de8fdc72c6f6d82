"""`openstack software trigger list` and `show`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from osc_lib.command import command

from stoker_client.osc._common import Row, client_of, count, display, list_rows
from stoker_client.triggers import COLUMNS, STATUSES


class ListTrigger(command.Lister):
    """List the triggers of the project, newest first"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--stack", metavar="<stack>", help="Only those of this stack: name or ID")
        parser.add_argument("--status", choices=STATUSES, help="Only those that are so")
        parser.add_argument("--limit", metavar="<n>", type=count, help="The newest ones")
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], list[Row]]:
        triggers = client_of(self).triggers
        return list_rows(
            triggers.all(stack=parsed_args.stack, status=parsed_args.status, limit=parsed_args.limit), COLUMNS
        )


class ShowTrigger(command.ShowOne):
    """Show a trigger and its servers"""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("trigger", metavar="<trigger>", help="ID of the trigger")
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[Row, Row]:
        return display(client_of(self).triggers.show(parsed_args.trigger), parsed_args)
