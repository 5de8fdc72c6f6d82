"""What was at a path before a deployment changed it, as data that a later run can restore."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Dict, Mapping

from stoker_agent import files

#: Largest file whose former content is kept.
_LONGEST = 1024 * 1024


def describe(path: Path) -> Dict[str, Any]:
    """Return what is at a path, with its content and rights. A file above 1 MiB has no content. Raises OSError."""
    present = files.inspect(path)
    before: Dict[str, Any] = {"was": present.kind}
    if present.kind in ("file", "directory"):
        before.update(mode=present.mode, uid=present.uid, gid=present.gid)
    if present.kind == "file":
        is_short = present.size <= _LONGEST
        before["content"] = base64.b64encode(files.read(path) or b"").decode() if is_short else None
    if present.kind == "link":
        before["target"] = present.target
    return before


def restore(path: Path, before: Mapping[str, Any]) -> str:
    """
    Restore what was at a path. Return what this changed: ``removed``, ``restored``, or "" for nothing. Raises OSError.

    A file whose content was not kept, and a directory that the deployment has not made (``made``), stay as they are.
    """
    present = describe(path)
    if present == {key: value for key, value in before.items() if key != "made"}:
        return ""
    was = before["was"]
    if was == "absent":
        if present["was"] == "directory" and before.get("made") != "directory":
            return ""
        files.remove(path)
        return "removed"
    if was == "directory":
        files.make_folder(path, before["mode"], before["uid"], before["gid"])
    elif was == "link":
        files.link(path, before["target"])
    elif before.get("content") is None:
        return ""
    else:
        content = base64.b64decode(before["content"])
        files.write(path, content, before["mode"], uid=before["uid"], gid=before["gid"], folder_mode=0o755)
    return "restored"
