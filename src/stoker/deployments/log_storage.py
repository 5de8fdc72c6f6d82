"""
Storage of run output: the head and the tail of each stream, up to a limit of bytes.

Agents send a stream in order. If an agent cannot keep up, it continues at a later offset (a gap), so that followers see
the newest output, and sends the whole tail again at the end. Offsets count all bytes of the stream, so that readers can
detect missing bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.deployments.masker import Masker, release
from stoker.deployments.runs import find_run, of_server
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid
from stoker.store import logs
from stoker.store.logs import Received
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

#: Part of the note that an agent puts in place of output it has cut.
_CUT = " were cut here]"
#: The tail is trimmed each time it grows by this fraction of its size.
_STEPS = 16


def append_log(
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
    Append output of a run. Return the offset up to which the stream is known.

    ``data`` are the bytes of ``stream`` (``stdout`` or ``stderr``) from ``offset`` on. Bytes before the known offset
    are dropped, so an agent may repeat itself. If ``offset`` is beyond the known offset, nothing is stored and the
    agent continues from the returned offset; with ``gap``, the bytes between are lost instead. ``again``: the agent
    sends the output from ``offset`` on once more, because it had gaps. At most ``most`` bytes of the stream are kept.

    Raises Invalid for an unknown stream, and EntityNotFound if the server has no such run.
    """
    if stream not in logs.STREAMS:
        raise Invalid(f"stream must be stdout or stderr, not {stream!r}")
    deployment = of_server(tx, server_id, config_id)
    find_run(tx, deployment)
    size, held_bytes = logs.lock_received(tx, deployment.id, config_id, stream)
    if offset > size and not gap:
        return size
    if again and most // 2 <= offset < size:
        logs.drop(tx, deployment.id, config_id, stream, most // 2, size, reaching=offset)
        size, held_bytes = offset, held_bytes[: max(0, len(held_bytes) - (size - offset))]
    start = max(offset, size)
    new_data = data[start - offset :]
    if new_data:
        _take(tx, deployment, stream, start, new_data, Received(size, held_bytes), most)
        tx.notify(deployment_topic(deployment.id))
    return max(size, start + len(new_data))


def store_report(tx: Tx, deployment: Deployment, values: Mapping[str, object], most: int) -> None:
    """
    Store output from the report of a run, as far as the agent has not sent it during the run.

    The report has all output of a short run, and the rest of the output if the server was offline at the end of the
    run.
    """
    for stream in ("stdout", "stderr"):
        text = values.get(f"deploy_{stream}")
        if isinstance(text, str) and text:
            find_run(tx, deployment)
            before = logs.lock_received(tx, deployment.id, deployment.config_id, stream)
            size = before.size
            data = text.encode("utf-8", "replace")
            if len(data) > size and (size == 0 or _is_whole(text)):
                _take(tx, deployment, stream, size, data[size:], before, most)


def _is_whole(text: str) -> bool:
    """Return whether the text's bytes are those of the stream, so that offsets are valid."""
    return _CUT not in text and "\ufffd" not in text


def _take(tx: Tx, deployment: Deployment, stream: str, offset: int, data: bytes, before: Received, most: int) -> None:
    """Store new bytes with secrets masked. ``before``: the state of the stream so far."""
    end, held_bytes = offset + len(data), b""
    if before.held_bytes and offset == before.size:
        offset, data = offset - len(before.held_bytes), before.held_bytes + data
    elif before.held_bytes:  # the bytes between are lost, and the held bytes may begin a secret
        _keep(
            tx, deployment, stream, before.size - len(before.held_bytes), release(before.held_bytes), before.size, most
        )
    if tx.secrets.texts:
        data, held_bytes = Masker(tx.secrets.texts).mask(data)
    if data:
        _keep(tx, deployment, stream, offset, data, before.size, most)
    logs.grow(tx, deployment.id, deployment.config_id, stream, end, held_bytes)


def _keep(tx: Tx, deployment: Deployment, stream: str, offset: int, data: bytes, before: int, most: int) -> None:
    """Store bytes in the head or the tail. ``before``: the offset up to which the stream was known."""
    id, run = deployment.id, deployment.config_id
    head, tail = most // 2, most - most // 2
    step = max(1, tail // _STEPS)
    end = offset + len(data)
    if offset < head:
        _append(tx, id, run, stream, offset, data[: head - offset])
    if end > head:
        first = max(offset, head, end - (tail - step))
        _append(tx, id, run, stream, first, data[first - offset :])
        if (end - head) // step != (max(before, head) - head) // step:
            logs.drop(tx, id, run, stream, head, end - (tail - step))


def _append(tx: Tx, deployment_id: str, run: str, stream: str, offset: int, data: bytes) -> None:
    """Store bytes in chunks that readers can load with little memory, cut between characters."""
    while data:
        size = logs.PAGE_BYTES
        while len(data) - size > 0 and size > logs.PAGE_BYTES - 4 and data[size] & 0xC0 == 0x80:
            size -= 1
        logs.append(tx, deployment_id, run, stream=stream, offset=offset, data=data[:size], at=tx.now)
        offset, data = offset + size, data[size:]
