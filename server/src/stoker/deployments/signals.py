"""The effect of a signal on a deployment. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from stoker.model.deployment import PREVIEW, Deployment
from stoker.model.status import Status

#: Value of a result: id of the derived config that was run.
RUN = "deploy_config_id"
CODE = "deploy_status_code"
STREAMS = ("deploy_stdout", "deploy_stderr")
ALWAYS = (*STREAMS, CODE)
#: Stoker's own: the agent's reason for a missing regular result (interrupted, timed out, no hook).
REASON = "deploy_status_reason"
#: IN_PROGRESS, COMPLETE or FAILED, from a hook that knows ``deploy_status_aware``. It overrides all other values.
STATUS = "deploy_status"
#: Exit code of a hook that does not support the mode of the run (EOPNOTSUPP).
UNSUPPORTED = "95"
#: From hooks that know them: whether the run changed the server, and a list of what it changed.
_CHANGED, CHANGES = "deploy_changed", "deploy_changes"
#: Limits of the stored list of changes.
_MOST_CHANGES, _LONGEST_DIFF = 101, 4096
#: Limit of the number of changed items: it fits into a column of the database.
_MOST_ITEMS = 2**31 - 1
#: The last member of a list that a hook has cut: the number of changes that it omits.
_OMITTED = re.compile(r"(\d{1,9}) more")


def resolve_signal(
    deployment: Deployment, outputs: Iterable[Mapping[str, Any]], values: Mapping[str, Any]
) -> Deployment:
    """
    Return the deployment after a report of ``values``; unchanged if it has ended, because late and repeated signals are
    normal. Values that are neither declared ``outputs`` nor ``deploy_*`` are dropped. A non-zero exit code or an error
    output fails the deployment, unless the signal contains an explicit status.
    """
    if deployment.status != Status.IN_PROGRESS:
        return deployment
    kept = {name: values.get(name) for name in ALWAYS}
    reasons = [str(values[REASON])] if values.get(REASON) else []
    code = values.get(CODE)
    if code and str(code) != "0":
        reasons.append(f"deploy_status_code : Deployment exited with non-zero status code: {code}")
    for output in outputs:
        name = output["name"]
        if name not in values:
            continue
        kept[name] = values[name]
        # Heat fails if the key is present. Here an empty error output is not an error.
        if output.get("error_output") and values[name] not in (None, ""):
            reasons.append(f"{name} : {values[name]}")
    is_unknown = deployment.mode == PREVIEW and str(code) == UNSUPPORTED
    status = Status.FAILED if reasons and not is_unknown else Status.COMPLETE
    if values.get(STATUS) in (Status.COMPLETE, Status.FAILED):
        status = Status(values[STATUS])
        if status is Status.COMPLETE:
            reasons = reasons[:1] if values.get(REASON) else []
    changed, changes = read_changes(values)
    if is_unknown:
        reasons = [f"Cannot preview: {values.get(REASON) or 'the hook cannot show what it would change'}"]
    words = ", ".join(reasons) or ("Outputs received" if status is Status.COMPLETE else "The agent says that it failed")
    return replace(
        deployment,
        status=status,
        # PostgreSQL refuses NUL in a text column such as the reason; outputs are JSON, which may contain it.
        status_reason=words.replace("\0", ""),
        output_values=kept,
        changed=changed,
        changed_items=_count_changed(changes) if changed else 0,
        changes=tuple(changes),
        status_code=read_code(values),
    )


def is_progress(values: Mapping[str, Any]) -> bool:
    """Return whether a signal reports only progress, not an end."""
    return values.get(STATUS) == Status.IN_PROGRESS


def read_changes(values: Mapping[str, Any]) -> tuple[bool | None, list[dict[str, str]]]:
    """Return whether the run changed the server, if known, and maps with ``item``, ``outcome`` and ``diff``."""
    changed, reported = values.get(_CHANGED), values.get(CHANGES)
    items = [item for item in reported if isinstance(item, dict)] if isinstance(reported, list) else []
    changes = [
        {name: item[name][:_LONGEST_DIFF] for name in ("item", "outcome", "diff") if isinstance(item.get(name), str)}
        for item in items[:_MOST_CHANGES]
    ]
    return (changed if isinstance(changed, bool) else None), changes


def read_code(values: Mapping[str, Any]) -> str | None:
    """Return the exit code of a run in its values, or None."""
    code = values.get(CODE)
    return None if code is None else str(code).replace("\0", "")[:64]


def _count_changed(changes: Sequence[Mapping[str, str]]) -> int:
    """Return the number of changed items, including those that the hook has omitted from the list."""
    omitted = [_OMITTED.fullmatch(change.get("item", "")) for change in changes if change.get("outcome") == "omitted"]
    listed = sum(change.get("outcome") == "changed" for change in changes)
    return min(listed + sum(int(match[1]) for match in omitted if match), _MOST_ITEMS)
