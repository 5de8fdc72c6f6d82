"""The logs of all runs of a trigger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker_client.client import Client
from stoker_client.errors import NotFound
from stoker_client.shapes import Target, TriggerLog


def read_written(client: Client, targets: Iterable[Target]) -> Iterator[TriggerLog]:
    """Yield the log so far, server by server."""
    for target in targets:
        if not target.get("deployment_id"):
            continue  # the run has not begun
        whose = {key: target.get(key) for key in ("server_id", "server_name", "resource_name")}
        try:
            for chunk in client.deployments.logs(str(target.get("deployment_id"))):
                yield {**whose, **chunk}  # type: ignore[typeddict-item]  # mypy does not join TypedDicts
        except NotFound:
            continue  # the deployment was deleted meanwhile


def follow_written(client: Client, id_: str) -> Iterator[TriggerLog]:
    """Yield the log so far and new chunks until the trigger ends."""
    for event in client.triggers.events(id_):
        if event.name == "log":
            yield event.json()
