"""Options for the action and servers of a trigger, shared by `trigger create` and `schedule create`."""

from collections.abc import Sequence
from typing import Any

import click

from stoker_client import triggers
from stoker_client.cli._options import merge, one_of, pair, rollout_options, selector_option, together
from stoker_client.cli._session import Session
from stoker_client.collection import is_id, is_pattern
from stoker_client.servers import Servers

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
    rollout_options,
    click.option("--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="The time limit of each run."),
    click.option("--signal-transport", metavar="NAME", help="The signal transport."),
])  # fmt: skip


def trigger_body(
    session: Session,
    *,
    words: Sequence[str],
    config: str | None,
    deployment: str | None,
    inputs: Sequence[tuple[str, str]],
    input_files: Sequence[tuple[str, str]],
    allow_undeclared: bool,
    servers: Sequence[str],
    selector: str | None,
    **options: Any,
) -> dict[str, Any]:
    """Return the request that ``trigger_options`` describe. The client is used only after all other checks."""
    if servers and selector:
        raise click.UsageError("name servers either with --on or with --label")
    if config is not None and not (servers or selector):
        raise click.UsageError("a config has no servers: name them with --on or --label")
    source = _source(words, config, deployment)
    values = merge(inputs, input_files, "--input-file")
    if deployment is not None:
        source["deployment_id"] = session.client.deployments.find_id(deployment)
    if config is not None:
        source["config_id"] = session.client.configs.find_id(config)
    if "stack" in source:
        source["stack"] = session.client.stacks.resolvable(source["stack"])
    return triggers.body(
        **source,
        input_values=values,
        allow_undeclared=allow_undeclared or None,
        servers=_find_servers(session.client.servers, servers),
        selector=selector,
        **options,
    )


def _find_servers(servers: Servers, refs: Sequence[str]) -> list[str]:
    """Return references that the service resolves. A pattern stands for several servers."""
    if any(map(is_pattern, refs)):
        return [server["id"] for server in servers.find(refs)]
    return [servers.resolvable(ref) for ref in refs]


def trigger_title(*, words: Sequence[str], config: str | None, deployment: str | None, **_: object) -> str:
    """Return a short title of what ``trigger_options`` describe."""
    return " ".join([*filter(None, (config, deployment)), *words])


def _source(words: Sequence[str], config: str | None, deployment: str | None) -> dict[str, Any]:
    """Return the part of the request that the words describe. Raises UsageError if they are incomplete."""
    resource_words = _split_resource(words)
    is_named = config is not None or deployment is not None
    if not one_of(config is not None, deployment is not None, len(resource_words) > 1):
        raise click.UsageError(_TWICE if is_named else _too_little(resource_words))
    body = {} if is_named else {"stack": resource_words.pop(0), "resource": resource_words.pop(0)}
    if len(resource_words) > 1:
        raise click.UsageError(f"unexpected argument {resource_words[1]!r} after ACTION")
    return body | ({"action": resource_words[0]} if resource_words else {})


def _split_resource(words: Sequence[str]) -> list[str]:
    """Split ``STACK/RESOURCE`` in two words. ``NAME/ID`` is a stack."""
    stack, slash, resource = words[0].partition("/") if words else ("", "", "")
    return [stack, resource, *words[1:]] if slash and not is_id(resource) else list(words)


_TWICE = "give only one of STACK RESOURCE, --config and --deployment"


def _too_little(words: Sequence[str]) -> str:
    if words:
        return f"name a resource: `stoker trigger {words[0]} RESOURCE`"
    return "give STACK RESOURCE, --config or --deployment"
