"""What an agent says while a run goes on: progress and live output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from stoker.model.deployment import Deployment, Progress
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.status import Status
from stoker.store import deployments, runs
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

Stream = Literal["stdout", "stderr"]

#: Bytes of live output kept of one stream of one run; the end is in the deployment's outputs anyway.
KEPT = 8 * 1024 * 1024


def progress(tx: Tx, *, server_id: str, config_id: str, state: str, percent: int | None, message: str | None) -> None:
    """Raises EntityNotFound when this server has no such run. A run that has ended says nothing more."""
    deployment = _of_server(tx, server_id, config_id)
    if deployment.status != Status.IN_PROGRESS:
        return
    said = Progress(state[:64], percent, message and message.replace("\0", "")[:1000], tx.now)
    runs.start(tx, deployment.id, config_id, tx.now)
    runs.say(tx, deployment.id, config_id, said)
    deployments.save(tx, replace(deployment, status_reason=in_words(said)))
    tx.ring(deployment_topic(deployment.id))


def in_words(said: Progress) -> str:
    word = said.state.capitalize()
    percent = "" if said.percent is None else f" ({said.percent} %)"
    return f"{word}{percent}: {said.message}" if said.message else f"{word}{percent}"


def log(tx: Tx, *, server_id: str, config_id: str, stream: str, offset: int, data: bytes) -> int:
    """
    Keep what is new of ``data``, the bytes of ``stream`` from ``offset`` on; return how far the stream is known.

    Bytes that came before are dropped, so an agent may repeat itself; beyond KEPT bytes only the count goes on.
    """
    if stream not in ("stdout", "stderr"):
        raise Invalid(f"stream must be stdout or stderr, not {stream!r}")
    deployment = _of_server(tx, server_id, config_id)
    runs.start(tx, deployment.id, config_id, tx.now)
    known = runs.size(tx, deployment.id, config_id, stream)
    if offset > known:
        return known  # a gap: the agent goes on from here
    fresh = data[known - offset :]
    if fresh:
        kept = fresh[: max(0, KEPT - known)]
        if kept:
            runs.append(tx, deployment.id, config_id, stream=stream, offset=known, data=kept, at=tx.now)
        runs.grow(tx, deployment.id, config_id, stream, known + len(fresh))
        tx.ring(deployment_topic(deployment.id))
    return known + len(fresh)


def log_of_report(tx: Tx, deployment: Deployment, values: Mapping[str, object]) -> None:
    """A run so short that nothing was sent while it went on: its report's output is its log."""
    for stream in ("stdout", "stderr"):
        text = values.get(f"deploy_{stream}")
        if isinstance(text, str) and text:
            runs.start(tx, deployment.id, deployment.config_id, tx.now)
            if not runs.size(tx, deployment.id, deployment.config_id, stream):
                data = text.encode("utf-8", "replace")[-KEPT:]
                runs.append(tx, deployment.id, deployment.config_id, stream=stream, offset=0, data=data, at=tx.now)
                runs.grow(tx, deployment.id, deployment.config_id, stream, len(data))


def _of_server(tx: Tx, server_id: str, config_id: str) -> Deployment:
    known = deployments.of_run(tx, server_id, config_id)
    deployment = deployments.find(tx, known.id, hold=True) if known else None
    if deployment is None or deployment.config_id != config_id:
        raise EntityNotFound.of("Run", config_id)
    return deployment
