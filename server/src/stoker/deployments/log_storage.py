"""
Storage of run output: the head and the tail of each stream, up to a limit of bytes, with secrets masked.

Agents send a stream in order. If an agent cannot keep up, it continues at a later offset (a gap), so that followers see
the newest output, and sends the whole tail again at the end. Offsets count all bytes of the stream, so that readers can
detect missing bytes. The functions return the deployment with the new state of its streams, which the caller stores.

Each secret is replaced by as many stars as it has bytes, before any byte is stored, whichever agent sent it, so that
offsets remain valid. A secret may begin in one chunk and end in the next, so bytes at the end of a chunk that may begin
a secret are held back. The masker finds literal values of at least ``secrets.SHORTEST`` characters, their form in JSON,
and the longer lines of multi-line values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from stoker.deployments.runs import of_server
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid
from stoker.model.secrets import SHORTEST, variants
from stoker.store import configs, deployments, runs
from stoker.store.notifier import deployment_topic
from stoker.store.tx import Tx

_STAR = b"*"


class Masker:
    """Masks one stream of one run."""

    def __init__(self, secrets: Iterable[str]) -> None:
        encoded = {
            text.encode("utf-8", "replace") for secret in secrets for text in variants(secret) if len(text) >= SHORTEST
        }
        #: Longest first, because one secret may be the beginning of another.
        self._secrets = sorted(encoded, key=len, reverse=True)
        self._expression = re.compile(b"|".join(map(re.escape, self._secrets))) if encoded else None

    def mask(self, data: bytes) -> tuple[bytes, bytes]:
        """Return (``data`` with secrets masked, bytes at its end that may begin a secret, unmasked)."""
        if self._expression is None:
            return data, b""
        masked, end = bytearray(data), 0
        for match in self._expression.finditer(data):
            end = match.end()
            masked[match.start() : end] = _STAR * (end - match.start())
        kept = len(data) - self._prefix_length(data[end:])
        return bytes(masked[:kept]), data[kept:]

    def _prefix_length(self, data: bytes) -> int:
        """Return how many bytes at the end of ``data`` are the beginning of a secret."""
        longest = 0
        for secret in self._secrets:
            for size in range(min(len(secret) - 1, len(data)), longest, -1):
                if data.endswith(secret[:size]):
                    longest = size
                    break
        return longest


def release(held_bytes: bytes) -> bytes:
    """Return held bytes at the end of a stream: masked if long enough to reveal the beginning of a secret."""
    return held_bytes if len(held_bytes) < SHORTEST else _STAR * len(held_bytes)


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
    Append ``data``, bytes of ``stream`` (stdout, stderr) from ``offset`` on. Return the offset up to which the stream
    is known. Known bytes are dropped. If ``offset`` is beyond, nothing is stored and the agent continues from the
    returned offset; with ``gap``, the bytes between are lost. ``again``: the agent sends what had gaps once more. At
    most ``most`` bytes are kept.

    Raises Invalid for an unknown stream, and EntityNotFound if the server has no such run.
    """
    if stream not in runs.STREAMS:
        raise Invalid(f"stream must be stdout or stderr, not {stream!r}")
    deployment = of_server(tx, server_id, config_id)
    output = _Output.of(tx, deployment, stream, most)
    if offset > output.size and not gap:
        return output.size
    configs.learn_secrets(tx, config_id)  # the output may contain the secrets
    if again:
        output.rewind(offset)
    start = max(offset, output.size)
    new_data = data[start - offset :]
    if new_data:
        output.take(start, new_data)
        deployments.save_streams(tx, output.save(deployment))
        tx.notify(deployment_topic(deployment.id))
    return max(output.size, offset)


def store_report(tx: Tx, deployment: Deployment, values: Mapping[str, object], most: int) -> Deployment:
    """
    Store output of a report that the agent has not sent during the run: all of a short run, the rest if the server was
    offline at its end. The transaction knows the secrets of the run's config.
    """
    for stream in runs.STREAMS:
        text = values.get(f"deploy_{stream}")
        if isinstance(text, str) and text:
            output = _Output.of(tx, deployment, stream, most)
            data = text.encode("utf-8", "replace")
            if len(data) > output.size and (output.size == 0 or _is_whole(text)):
                output.take(output.size, data[output.size :])
                deployment = replace(output.save(deployment), last_heartbeat_at=tx.now)
    return deployment


def end_output(tx: Tx, deployment: Deployment) -> Deployment:
    """Store the bytes at the end of the streams that no chunk contains yet."""
    for stream in runs.STREAMS:
        if getattr(deployment, f"{stream}_held"):
            output = _Output.of(tx, deployment, stream, 0)
            at = output.size - len(output.held_bytes)
            runs.append_output(
                tx, output.id, output.run, stream=stream, offset=at, data=release(output.held_bytes), at=tx.now
            )
            output.held_bytes = b""
            deployment = output.save(deployment)
    return deployment


def _is_whole(text: str) -> bool:
    """Return whether the text's bytes are those of the stream, so that offsets are valid."""
    return _CUT not in text and "\ufffd" not in text


@dataclass(slots=True)
class _Output:
    """One stream of a locked deployment's run."""

    tx: Tx
    id: str
    run: str
    stream: str
    #: The number of received bytes, and the last ones, which no chunk contains yet.
    size: int
    held_bytes: bytes
    #: At most so many bytes are kept.
    most: int

    @classmethod
    def of(cls, tx: Tx, deployment: Deployment, stream: str, most: int) -> _Output:
        size, held_bytes = getattr(deployment, f"{stream}_bytes"), getattr(deployment, f"{stream}_held")
        return cls(tx, deployment.id, deployment.config_id, stream, size, held_bytes or b"", most)

    def save(self, deployment: Deployment) -> Deployment:
        """Return the deployment with the state of the stream."""
        state = {f"{self.stream}_bytes": self.size, f"{self.stream}_held": self.held_bytes or None}
        return replace(deployment, **state)

    def rewind(self, offset: int) -> None:
        """Forget the tail from ``offset`` on, which the agent sends once more."""
        if self.most // 2 <= offset < self.size:
            runs.drop_output(self.tx, self.id, self.run, self.stream, self.most // 2, self.size, reaching=offset)
            self.held_bytes = self.held_bytes[: max(0, len(self.held_bytes) - (self.size - offset))]
            self.size = offset

    def take(self, offset: int, data: bytes) -> None:
        """Store new bytes with secrets masked."""
        end, held_bytes, before = offset + len(data), b"", self.size
        if self.held_bytes and offset == before:
            offset, data = offset - len(self.held_bytes), self.held_bytes + data
        elif self.held_bytes:  # the bytes between are lost, and the held bytes may begin a secret
            self._keep(before - len(self.held_bytes), release(self.held_bytes))
        if self.tx.secrets.texts:
            data, held_bytes = Masker(self.tx.secrets.texts).mask(data)
        if data:
            self._keep(offset, data)
        self.size, self.held_bytes = end, held_bytes

    def _keep(self, offset: int, data: bytes) -> None:
        """Store bytes in the head or the tail."""
        head, tail = self.most // 2, self.most - self.most // 2
        step = max(1, tail // _STEPS)
        end = offset + len(data)
        if offset < head:
            self._append(offset, data[: head - offset])
        if end > head:
            first = max(offset, head, end - (tail - step))
            self._append(first, data[first - offset :])
            if (end - head) // step != (max(self.size, head) - head) // step:
                runs.drop_output(self.tx, self.id, self.run, self.stream, head, end - (tail - step))

    def _append(self, offset: int, data: bytes) -> None:
        """Store bytes in chunks that readers can load with little memory, cut between characters."""
        while data:
            size = runs.PAGE_BYTES
            while len(data) - size > 0 and size > runs.PAGE_BYTES - 4 and data[size] & 0xC0 == 0x80:
                size -= 1
            chunk = data[:size]
            runs.append_output(
                self.tx, self.id, self.run, stream=self.stream, offset=offset, data=chunk, at=self.tx.now
            )
            offset, data = offset + size, data[size:]
