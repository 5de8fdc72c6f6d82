"""Options for the action and servers of a trigger, shared by `trigger create` and `schedule create`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from stoker_client import triggers
from stoker_client.cli._options import canary_option, merge, one_of, pair, selector_option, service_names, together
from stoker_client.client import Client
from stoker_client.collection import is_id, is_prefix
from stoker_client.servers import join_selectors

trigger_options = together([
    click.argument("words", nargs=-1, metavar="[STACK RESOURCE] [ACTION]"),
    click.option("--config", metavar="CONFIG", help="Run this config instead of a resource's."),
    click.option("--deployment", metavar="DEPLOYMENT", help="Run this deployment's config on its server."),
    click.option("-i", "--input", "inputs", type=pair, multiple=True, metavar="NAME=VALUE", help="One input."),
    click.option(
        "--input-file", "input_files", type=pair, multiple=True, metavar="NAME=FILE",
        help="One input, with the content of a file as its value.",
    ),
    click.option("--allow-undeclared", is_flag=True, help="Pass inputs that the config does not declare."),
    click.option(
        "--on", "servers", multiple=True, metavar="SERVER", help="A server to run on, or a pattern such as 'web*'."
    ),
    selector_option("Run on the servers that SELECTOR selects."),
    click.option("--max-concurrent", type=click.IntRange(min=1), metavar="N", help="At most N servers at a time."),
    click.option(
        "--max-fail-percentage", type=click.IntRange(0, 100), metavar="P",
        help="Start on no more servers when more than this share of all has failed.",
    ),
    canary_option("Begin on this number, or percentage, of the servers; on the others when these have succeeded."),
    click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="The time limit of each run."),
    click.option("--signal-transport", metavar="NAME", help="The signal transport."),
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TriggerInput:
    """The user's description of the action and its servers."""

    words: Sequence[str]
    config: str | None
    deployment: str | None
    inputs: Sequence[tuple[str, str]]
    input_files: Sequence[tuple[str, str]]
    allow_undeclared: bool
    servers: Sequence[str]
    selectors: Sequence[str]
    max_concurrent: int | None
    max_fail_percentage: int | None
    canary: int | str | None
    timeout: int | None
    signal_transport: str | None

    def body(self, client: Callable[[], Client]) -> dict[str, Any]:
        """Return the request. ``client`` is called only after all other checks."""
        if self.servers and self.selectors:
            raise click.UsageError("name servers either with --on or with --label")
        if self.config is not None and not (self.servers or self.selectors):
            raise click.UsageError("a config has no servers: name them with --on or --label")
        source = dict(self._source())
        values = merge(self.inputs, self.input_files, "--input-file")
        if "deployment_id" in source:
            source["deployment_id"] = client().deployments.find_id(source["deployment_id"])
        if is_prefix(source.get("stack") or ""):
            source["stack"] = client().stacks.canonical(source["stack"]).rpartition("/")[2]
        return triggers.body(
            **source,
            config_id=None if self.config is None else client().configs.find_id(self.config),
            input_values=values,
            allow_undeclared=self.allow_undeclared or None,
            servers=list(service_names(client(), self.servers)) if self.servers else [],
            selector=join_selectors(self.selectors),
            max_concurrent=self.max_concurrent,
            max_fail_percentage=self.max_fail_percentage,
            canary=self.canary,
            timeout=self.timeout,
            signal_transport=self.signal_transport,
        )

    @property
    def title(self) -> str:
        """Return a short title."""
        return " ".join([*(word for word in (self.config, self.deployment) if word), *self.words])

    def _source(self) -> Mapping[str, Any]:
        """Return the part of the request that the words describe. Raises UsageError if they are incomplete."""
        words = _split_resource(self.words)
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


def _split_resource(words: Sequence[str]) -> list[str]:
    """Split ``STACK/RESOURCE`` in two words. ``NAME/ID`` is a stack."""
    stack, slash, resource = words[0].partition("/") if words else ("", "", "")
    return [stack, resource, *words[1:]] if slash and not is_id(resource) else list(words)


_TWICE = "say what shall run once: as STACK RESOURCE, with --config, or with --deployment"


def _too_little(words: Sequence[str]) -> str:
    if words:
        return f"name a resource: `stoker trigger {words[0]} RESOURCE`"
    return "say what shall run: as STACK RESOURCE, with --config, or with --deployment"
