"""
Groups of equal output: runs whose exit codes are equal, and whose output differs only in the names and addresses of
their servers, and in times. Each target stores the digest of its output when its run ends.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from stoker.deployments.signals import STREAMS
from stoker.model.deployment import Deployment
from stoker.model.trigger import Target
from stoker.store import deployments, servers, targets
from stoker.store.tx import Tx

SERVER, TIME = "<server>", "<time>"
#: Characters. A shorter name is part of many words.
_SHORTEST = 3
#: Characters of each stream that a group shows at most. The log of its run has all of them.
_MOST_TEXT = 16 * 1024
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\ [AP]M)?"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
#: Points in time, and measured durations. Every repetition is bounded, so that a search takes linear time. A date
#: without a time of day is rather a part of what the run reports than the time at which it ran.
_TIMES = re.compile(
    rf"""
    (?<![\w:])(?:
    \d{{4}}-\d\d-\d\d[T\ ]{_CLOCK}(?:\ ?Z|\ ?[+-]\d\d:?\d\d|\ UTC)?
    | (?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),?\ )?(?:{_MONTH}\ {{1,2}}\d{{1,2}}|\d{{1,2}}\ {_MONTH})(?:\ \d{{4}})?
      \ {_CLOCK}(?:\ (?:[A-Z]{{3,5}}|[+-]\d{{4}}))?(?:\ \d{{4}})?
    | \d{{1,2}}:\d\d:\d\d(?:[.,]\d{{1,9}})?
    | (?:\d{{1,6}}m)?\d{{1,9}}[.,]\d{{1,9}}\ ?(?:s|ms|µs|us|secs?|seconds?)
    )(?![\w:])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputGroup:
    """Ended targets with equal exit codes and output. The texts are normalized."""

    count: int
    #: None: the runs reported no exit code, or never began. Then the group has one status reason.
    exit_code: str | None
    digest: str | None
    status_reason: str
    #: The deployment whose output represents the group.
    deployment_id: str | None
    stdout: str
    stderr: str
    #: Whether more output exists than the texts contain.
    is_cut: bool
    #: The names of the targets' servers, in the order of the targets.
    servers: list[str]


def group_outputs(tx: Tx, trigger_id: str, *, status: str | None, limit: int) -> tuple[list[OutputGroup], int]:
    """
    Return the ``limit`` largest groups of ended targets (of a ``status``), those of one size by exit code, and the
    number of all groups.
    """
    members: dict[tuple[str | None, ...], list[Target]] = {}
    for target in targets.list_ended(tx, trigger_id, status):
        reason = target.status_reason if target.digest is None else None
        members.setdefault((target.exit_code, target.digest, reason), []).append(target)
    ordered = sorted(members.values(), key=lambda group: (-len(group), _order_of_code(group[0].exit_code)))
    return [_describe(tx, group) for group in ordered[:limit]], len(ordered)


def digest_output(tx: Tx, target: Target, ended: Deployment) -> str | None:
    """Return the digest of the output of a run that has ended, or None if it has reported no exit code."""
    if ended.status_code is None:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for text in _normalize_streams(tx, target, ended):
        data = text.encode("utf-8", "replace")
        digest.update(b"%d:%b" % (len(data), data))
    return digest.hexdigest()


def normalize(text: str, own_names: Collection[str]) -> str:
    """Return the text with ``SERVER`` for a server's names, which are sorted by length, and ``TIME`` for times."""
    # Few outputs contain names, and compiling an expression takes longer than searching for them.
    if present := [re.escape(name) for name in own_names if name in text]:
        text = re.sub(rf"(?<!\w)(?:{'|'.join(present)})(?!\w)", SERVER, text)
    return _TIMES.sub(TIME, text)


def _normalize_streams(tx: Tx, target: Target, ended: Deployment) -> list[str]:
    """Return the normalized output of a target's run, stream by stream, with secrets redacted."""
    texts = [str(ended.output_values.get(name) or "") for name in STREAMS]
    if not any(texts):
        return texts
    own_names = _list_own_names(target, servers.load_facts(tx, target.server_id))
    return [normalize(tx.secrets.redact(text), own_names) for text in texts]


def _list_own_names(target: Target, facts: Mapping[str, object]) -> list[str]:
    """Return the names, ids and addresses of a target's server, longest first."""
    own = {target.server_id, target.server_name, target.deployment_id}
    own |= set(_list_texts([facts.get(name) for name in ("hostname", "fqdn", "address", "networks")]))
    return sorted((text for text in own if text and len(text) >= _SHORTEST and not text.isdecimal()), key=len)[::-1]


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _list_texts(part)


def _order_of_code(code: str | None) -> tuple[bool, int, str]:
    """Sort exit codes as numbers, and None after them."""
    number = int(code) if code and code.isascii() and code.isdecimal() else 0
    return code is None, number, code or ""


def _describe(tx: Tx, group: list[Target]) -> OutputGroup:
    shown = group[0]
    deployment = deployments.find(tx, shown.deployment_id) if shown.deployment_id and shown.digest else None
    stdout, stderr = ("", "") if deployment is None else _normalize_streams(tx, shown, deployment)
    return OutputGroup(
        count=len(group),
        exit_code=shown.exit_code,
        digest=shown.digest,
        status_reason=shown.status_reason,
        deployment_id=shown.deployment_id,
        stdout=stdout[:_MOST_TEXT],
        stderr=stderr[:_MOST_TEXT],
        is_cut=max(len(stdout), len(stderr)) > _MOST_TEXT,
        servers=[target.server_name for target in group],
    )
