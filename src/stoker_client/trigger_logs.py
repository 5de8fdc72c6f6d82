"""What all the runs of a trigger write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stoker_client.client import Client
from stoker_client.errors import NotFound
from stoker_client.shapes import Target, TriggerLog


def written(client: Client, targets: Iterable[Target]) -> Iterator[TriggerLog]:
    """Everything so far, server by server."""
    for target in targets:
        if not target.get("deployment_id"):
            continue  # not begun
        whose = {"server_id": target["server_id"], "server_name": target.get("server_name")}
        try:
            for chunk in client.deployments.logs(str(target.get("deployment_id"))):
                yield {**whose, **chunk}  # type: ignore[typeddict-item]
        except NotFound:
            continue  # deleted meanwhile


def follow_written(client: Client, id_: str) -> Iterator[TriggerLog]:
    """Everything so far and what comes, as it comes, until the trigger is over."""
    for event in client.triggers.events(id_):
        if event.name == "log":
            yield event.json()
