"""What runs changed on their servers, as text for people."""

from collections.abc import Iterator, Sequence

from stoker_client.shapes import Run, RunChange
from stoker_client.terminal import show_line, split_lines

#: Indentation of a difference below its item.
_INDENT = "    "


def summarize_changes(run: Run) -> str:
    """Return ``changed 3 items``, ``nothing changed``, or "" if the hook does not report it."""
    count = sum(change.get("outcome") == "changed" for change in run.get("changes") or ())
    return summarize(run.get("changed"), count, is_preview=run.get("mode") == "preview")


def summarize(changed: bool | None, count: int, *, is_preview: bool = False) -> str:
    """Return ``changed 3 items``, ``nothing changed``, or "" if ``changed`` is not known; 0 items are not counted."""
    if changed is None:
        return ""
    verb = "would change" if is_preview else "changed"
    if not changed:
        return f"nothing {verb}"
    return f"{verb} {count} item{'' if count == 1 else 's'}" if count else verb


def describe_changes(changes: Sequence[RunChange]) -> str:
    """Return each item with its outcome, and its difference on indented lines."""
    return "\n".join(line for change in changes for line in _lines(change))


def _lines(change: RunChange) -> Iterator[str]:
    outcome, item = show_line(change.get("outcome") or "changed"), show_line(change.get("item") or "")
    diff = split_lines((change.get("diff") or "").rstrip("\n"))
    if len(diff) == 1 and diff[0]:
        yield f"{outcome}: {item}: {diff[0].strip()}"
        return
    yield f"{outcome}: {item}"
    yield from (f"{_INDENT}{line}" for line in diff if len(diff) > 1)
