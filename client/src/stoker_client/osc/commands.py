"""The commands `openstack software deployment trigger`, `cancel`, `watch`, `history`, and `software trigger`."""

from __future__ import annotations

import json
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from osc_lib.command import command
from osc_lib.exceptions import CommandError

from stoker_client import triggers
from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._output import echo
from stoker_client.cli._wait import describe_continuation, explaining_interrupt, follow_trigger, trigger_failure
from stoker_client.client import Client
from stoker_client.errors import ClientError
from stoker_client.results import exit_code
from stoker_client.servers import join_selectors
from stoker_client.shapes import LogChunk
from stoker_client.triggers import COLUMNS, STATUSES
from stoker_client.updates import Event

Row = tuple[Any, ...]


def pair(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``. An argparse type."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ArgumentTypeError(f"{text!r} is not <key=value>")
    return name, value


def count(text: str) -> int:
    """Parse a whole number of at least 1. An argparse type."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def list_rows(things: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> tuple[Sequence[str], list[Row]]:
    """Return columns and rows for a lister command."""
    return columns, [tuple(thing.get(column) for column in columns) for thing in things]


def display(thing: Mapping[str, Any], parsed: Namespace) -> tuple[Row, Row]:
    """Return names and values for a show command: structures as they are for programs, as JSON text for tables."""
    if parsed.formatter in ("json", "yaml"):
        return tuple(thing), tuple(thing.values())
    return tuple(thing), tuple(
        json.dumps(value, indent=2, ensure_ascii=False) if isinstance(value, dict | list) else value
        for value in thing.values()
    )


RUNS = (
    *("number", "action", "state", "status", "status_code", "requested_by"),
    *("queued_time", "delivered_time", "start_time", "end_time"),
)


def argument(*names: str, **options: Any) -> tuple[Sequence[str], Mapping[str, Any]]:
    """Return the arguments of argparse's ``add_argument``."""
    return names, options


class StokerCommand:
    """A command whose class names its arguments. What a request must have is decided by the service."""

    arguments: Sequence[tuple[Sequence[str], Mapping[str, Any]]] = ()
    app: Any

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser: ArgumentParser = super().get_parser(prog_name)  # type: ignore[misc]  # of cliff's class, the next base
        for names, options in self.arguments:
            parser.add_argument(*names, **options)
        return parser

    @property
    def client(self) -> Client:
        """The client with the login of the `openstack` command."""
        return self.app.client_manager.stoker


class TriggerDeployment(StokerCommand, command.ShowOne):
    """Run an action of a deployment, of a stack's resource, or a config, on one or more servers"""

    arguments = (
        argument("deployment", metavar="<deployment>", nargs="?", help="ID of the deployment to run again"),
        argument("--stack", metavar="<stack>", help="Name or ID of the stack whose --resource to trigger"),
        argument("--config", metavar="<config>", help="ID, or unique name, of the config to run"),
        argument(
            "--resource", metavar="<resource>", help="A deployment, a group of them, a component or a config of --stack"
        ),
        argument("--action", metavar="<action>", help="The action: selects the configs of a component"),
        argument(
            "--input-value", metavar="<key=value>", type=pair, action="append", default=[],
            help="One input (repeatable)",
        ),
        argument("--allow-undeclared", action="store_true", help="Pass inputs that the config does not declare"),
        argument(
            "--server", metavar="<server>", action="append", default=[], help="A server to run it on (repeatable)"
        ),
        argument(
            "--label", metavar="<selector>", action="append", default=[],
            help="Run it on the servers with this label (key=value), or that match this condition (repeatable)",
        ),
        argument("--max-concurrent", metavar="<n>", type=count, help="Maximum number of servers at a time"),
        argument(
            "--max-fail-percentage", metavar="<p>", type=int,
            help="Start on no more servers when more than this percentage has failed",
        ),
        argument(
            "--canary", metavar="<n|p%>",
            help="Begin on this number, or percentage, of the servers; on the others when these have succeeded",
        ),
        argument("--timeout", metavar="<seconds>", type=count, help="The time limit of each run"),
        argument("--signal-transport", metavar="<transport>", help="The signal transport"),
        argument("--name", metavar="<name>", help="A name for the trigger"),
        argument(
            "--wait", action="store_true",
            help="Show every server until the trigger ends; exit with the highest exit code",
        ),
    )  # fmt: skip
    code = 0

    def take_action(self, parsed_args: Namespace) -> tuple[Row, Row]:
        client = self.client
        request = _request(parsed_args)
        if parsed_args.config:
            request["config_id"] = client.configs.find_id(parsed_args.config)
        trigger = client.triggers.create(request)
        if parsed_args.wait:
            with explaining_interrupt(
                describe_continuation(trigger["id"], again=f"openstack software trigger show {trigger['id']}"),
                doing="watching",
            ):
                watch = follow_trigger(client, trigger["id"])
            trigger = {**watch.trigger, "targets": watch.targets}
            self.code = watch.exit_code
            if line := trigger_failure(watch):
                echo(line, err=True)
        return display(trigger, parsed_args)

    def run(self, parsed_args: Namespace) -> int:
        return super().run(parsed_args) or self.code


class CancelDeployment(StokerCommand, command.Command):
    """Cancel runs of deployments"""

    arguments = (
        argument("deployment", metavar="<deployment>", nargs="+", help="ID of the deployment(s) to cancel"),
        argument("--force", action="store_true", help="Do not wait for the confirmation of the agents"),
    )

    def take_action(self, parsed_args: Namespace) -> None:
        failed = 0
        for id_ in parsed_args.deployment:
            try:
                self.client.deployments.cancel(id_, force=parsed_args.force)
            except ClientError as problem:
                failed += 1
                echo(str(problem), err=True)
        if failed:
            raise CommandError(f"{failed} of the {len(parsed_args.deployment)} deployments could not be cancelled")


class WatchDeployment(StokerCommand, command.Command):
    """Show the output and the progress of a deployment until it ends; exit with its code"""

    arguments = (argument("deployment", metavar="<deployment>", help="ID of the deployment to watch"),)

    def take_action(self, parsed_args: Namespace) -> int:
        deployments = self.client.deployments
        LogPrinter("table").all(_read_logs(deployments.events(parsed_args.deployment)))
        deployment = deployments.show(parsed_args.deployment, patient=True)
        if deployment["status"] != "COMPLETE":
            echo(f"{deployment['status']}: {deployment['status_reason'] or 'no reason given'}", err=True)
        return exit_code(deployment["status"], (deployment.get("output_values") or {}).get("deploy_status_code"))


def _read_logs(events: Iterable[Event]) -> Iterator[LogChunk]:
    """Yield the chunks of output, and print the progress."""
    for event in events:
        if event.name == "log":
            yield event.data
        elif event.name == "progress":
            echo(_progress(event.data), err=True)


class ListRuns(StokerCommand, command.Lister):
    """List every run of a deployment, newest first"""

    arguments = (argument("deployment", metavar="<deployment>", help="ID of the deployment"),)

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], list[Row]]:
        return list_rows(self.client.deployments.runs(parsed_args.deployment), RUNS)


def _request(parsed: Namespace) -> dict[str, Any]:
    return triggers.body(
        deployment_id=parsed.deployment,
        stack=parsed.stack,
        resource=parsed.resource,
        action=parsed.action,
        input_values=dict(parsed.input_value),
        allow_undeclared=parsed.allow_undeclared or None,
        servers=parsed.server,
        selector=join_selectors(parsed.label),
        max_concurrent=parsed.max_concurrent,
        max_fail_percentage=parsed.max_fail_percentage,
        canary=int(parsed.canary) if (parsed.canary or "").isdecimal() else parsed.canary,
        timeout=parsed.timeout,
        signal_transport=parsed.signal_transport,
        name=parsed.name,
    )


def _progress(progress: dict[str, Any]) -> str:
    percent = progress.get("percent")
    words = [
        progress.get("state") or "",
        f"{percent:g} %" if percent is not None else "",
        progress.get("message") or "",
    ]
    return "  ".join(word for word in words if word)


class ListTrigger(StokerCommand, command.Lister):
    """List the triggers of the project, newest first"""

    arguments = (
        argument("--stack", metavar="<stack>", help="Only triggers of this stack: name or ID"),
        argument("--status", choices=STATUSES, help="Only triggers with this status"),
        argument("--limit", metavar="<n>", type=count, help="Only the newest triggers"),
    )

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], list[Row]]:
        triggers = self.client.triggers
        return list_rows(
            triggers.all(stack=parsed_args.stack, status=parsed_args.status, limit=parsed_args.limit), COLUMNS
        )


class ShowTrigger(StokerCommand, command.ShowOne):
    """Show a trigger and its servers"""

    arguments = (argument("trigger", metavar="<trigger>", help="ID of the trigger"),)

    def take_action(self, parsed_args: Namespace) -> tuple[Row, Row]:
        return display(self.client.triggers.show(parsed_args.trigger), parsed_args)
