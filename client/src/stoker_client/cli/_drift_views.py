"""Rows and texts of checks."""

from collections.abc import Iterator, Mapping
from typing import Any

from stoker_client.checks import DRIFTED, state_of
from stoker_client.shapes import Check
from stoker_client.terminal import show_line

COLUMNS = ("deployment", "server", "state", "since", "summary")
WIDE = ("deployment_id", "server_id", "checked_at", "check_interval", "enforce", "reason")


def cells(check: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cells of a check in a list."""
    state = state_of(check)  # type: ignore[arg-type]  # rows of lists are plain mappings
    is_drifted = state == check["state"] == DRIFTED
    words = [check["summary"]] if is_drifted and check["summary"] else []
    return {
        "deployment": _reference(check),
        "server": check["server_name"] or check["server_id"],
        "state": state,
        "summary": ". ".join([*words, *([check["reason"]] if check["reason"] else [])]),
    }


def _reference(check: Mapping[str, Any]) -> str:
    """Return how commands refer to the deployment: ``STACK/RESOURCE``; else the name of its config, or its id."""
    if check["resource_name"]:
        return f"{check['stack_name']}/{check['resource_name']}"
    return str(check["name"] or check["deployment_id"])


def differences(check: Check) -> Iterator[str]:
    """Yield the lines that show the differences of one check."""
    yield f"{_reference(check)} on {check['server_name'] or check['server_id']}:"
    for change in check.get("changes") or ():
        outcome = change.get("outcome") and show_line(change["outcome"])
        yield f"  {show_line(change.get('item') or '?')}" + (
            f" ({outcome})" if outcome not in (None, "changed") else ""
        )
        yield from (f"    {line}" for line in (change.get("diff") or "").splitlines())
