"""The options that say what a trigger does and where, shared by what begins one now and what plans one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from stoker_client import triggers
from stoker_client.cli._options import together
from stoker_client.cli._values import merged, one_of, pair
from stoker_client.client import Client

trigger_options = together([
    click.argument("words", nargs=-1, metavar="[STACK RESOURCE] [ACTION]"),
    click.option("--config", metavar="CONFIG", help="Run this config (id, or unique name) instead of a resource's."),
    click.option("--deployment", metavar="DEPLOYMENT", help="Run what this deployment runs, on its server."),
    click.option("-i", "--input", "inputs", type=pair, multiple=True, metavar="NAME=VALUE", help="One input."),
    click.option(
        "--input-file", "input_files", type=pair, multiple=True, metavar="NAME=FILE",
        help="One input, its value being the content of a file.",
    ),
    click.option("--on", "servers", multiple=True, metavar="SERVER", help="A server to run it on."),
    click.option(
        "--label", "labels", type=pair, multiple=True, metavar="NAME=VALUE",
        help="Run it on the servers with this label; of several, with all.",
    ),
    click.option("--max-concurrent", type=click.IntRange(min=1), metavar="N", help="So many servers at a time."),
    click.option(
        "--max-fail-percentage", type=click.IntRange(0, 100), metavar="P",
        help="Begin on no more servers once it failed on more than this share of all.",
    ),
    click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="How long it may run on a server."),
    click.option("--signal-transport", metavar="NAME", help="How the results come back."),
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TriggerInput:
    """What the user said about what shall run, and where."""

    words: Sequence[str]
    config: str | None
    deployment: str | None
    inputs: Sequence[tuple[str, str]]
    input_files: Sequence[tuple[str, str]]
    servers: Sequence[str]
    labels: Sequence[tuple[str, str]]
    max_concurrent: int | None
    max_fail_percentage: int | None
    timeout: int | None
    signal_transport: str | None

    def body(self, client: Callable[[], Client]) -> dict[str, Any]:
        """The request. ``client`` is asked for once nothing else can be wrong."""
        if self.servers and self.labels:
            raise click.UsageError("say where either with --on or with --label")
        if self.config is not None and not (self.servers or self.labels):
            raise click.UsageError("a config has no servers of its own: say where with --on or --label")
        source = self._source()
        values = merged(self.inputs, self.input_files, "--input-file")
        return triggers.body(
            **source,
            config_id=None if self.config is None else client().configs.find(self.config)["id"],
            input_values=values,
            servers=list(self.servers),
            labels=dict(self.labels),
            max_concurrent=self.max_concurrent,
            max_fail_percentage=self.max_fail_percentage,
            timeout=self.timeout,
            signal_transport=self.signal_transport,
        )

    @property
    def title(self) -> str:
        """What runs, in a few words."""
        return " ".join([*(each for each in (self.config, self.deployment) if each), *self.words])

    def _source(self) -> Mapping[str, Any]:
        """What the words say, and whether it is enough."""
        words = list(self.words)
        if not one_of(self.config is not None, self.deployment is not None, len(words) > 1):
            raise click.UsageError(_too_little(words) if self.config is None and self.deployment is None else _TWICE)
        body: dict[str, Any] = {}
        if self.deployment is not None:
            body["deployment_id"] = self.deployment
        elif self.config is None:
            body = {"stack": words.pop(0), "resource": words.pop(0)}
        if len(words) > 1:
            raise click.UsageError(f"there is nothing to take {words[1]!r} for: STACK RESOURCE ACTION is all")
        return body | ({"action": words[0]} if words else {})


_TWICE = "say what shall run once: as STACK RESOURCE, with --config, or with --deployment"


def _too_little(words: Sequence[str]) -> str:
    if words:
        return f"{words[0]!r} is no command, and for a stack the resource to trigger is missing"
    return "say what shall run: as STACK RESOURCE, with --config, or with --deployment"
