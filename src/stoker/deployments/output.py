"""
What a run writes, kept while it writes: the head and the tail of each stream, however much there is between.

Agents send in order; one that cannot keep up says where it goes on (a gap), so that followers see what is newest, and
at the end sends the tail again, whole. Offsets count all bytes, so that what is missing can be told.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.deployments.runs import known, of_server
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid
from stoker.store import logs
from stoker.store.bell import deployment_topic
from stoker.store.tx import Tx

#: In what an agent has cut.
_CUT = " were cut here]"
#: So often, by parts of the tail, what is no longer tail is looked for and dropped.
_STEPS = 16


def log(
    tx: Tx,
    *,
    server_id: str,
    config_id: str,
    stream: str,
    offset: int,
    data: bytes,
    gap: bool = False,
    again: bool = False,
    most: int,
) -> int:
    """
    Keep what is new of ``data``, the bytes of ``stream`` from ``offset`` on; return how far the stream is known.

    Bytes that came before are dropped, so an agent may repeat itself. With ``gap`` those before ``offset`` that have
    not come never will; without, whoever is ahead is told where to go on. ``again``: from ``offset`` on there were
    gaps, and all of it comes once more. At most ``most`` bytes are kept.
    """
    if stream not in ("stdout", "stderr"):
        raise Invalid(f"stream must be stdout or stderr, not {stream!r}")
    deployment = of_server(tx, server_id, config_id)
    known(tx, deployment)
    size = logs.size(tx, deployment.id, config_id, stream)
    if offset > size and not gap:
        return size
    if again and most // 2 <= offset < size:
        logs.drop(tx, deployment.id, config_id, stream, most // 2, size, reaching=offset)
        size = offset
    start = max(offset, size)
    fresh = data[start - offset :]
    if fresh:
        _keep(tx, deployment, stream, start, fresh, size, most)
        tx.ring(deployment_topic(deployment.id))
    return max(size, start + len(fresh))


def log_of_report(tx: Tx, deployment: Deployment, values: Mapping[str, object], most: int) -> None:
    """
    What was not sent while the run went on is in its report: all of it of a run that was short, the rest of one whose
    server was away at its end.
    """
    for stream in ("stdout", "stderr"):
        text = values.get(f"deploy_{stream}")
        if isinstance(text, str) and text:
            known(tx, deployment)
            size = logs.size(tx, deployment.id, deployment.config_id, stream)
            data = text.encode("utf-8", "replace")
            if len(data) > size and (size == 0 or _is_whole(text)):
                _keep(tx, deployment, stream, size, data[size:], size, most)


def _is_whole(text: str) -> bool:
    """Whether its bytes are those that were written, so that one can count on them."""
    return _CUT not in text and "\ufffd" not in text


def _keep(tx: Tx, deployment: Deployment, stream: str, offset: int, data: bytes, before: int, most: int) -> None:
    """``before``: how far the stream was known."""
    id, run = deployment.id, deployment.config_id
    head, tail = most // 2, most - most // 2
    step = max(1, tail // _STEPS)
    end = offset + len(data)
    if offset < head:
        part = data[: head - offset]
        logs.append(tx, id, run, stream=stream, offset=offset, data=part, at=tx.now)
    if end > head:
        first = max(offset, head, end - (tail - step))
        logs.append(tx, id, run, stream=stream, offset=first, data=data[first - offset :], at=tx.now)
        if (end - head) // step != (max(before, head) - head) // step:
            logs.drop(tx, id, run, stream, head, end - (tail - step))
    logs.grow(tx, id, run, stream, end)
