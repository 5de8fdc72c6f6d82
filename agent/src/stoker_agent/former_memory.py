"""What earlier versions of the agent and of the catalog's steps have recorded for undo, in the form of today's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from stoker_agent import files

_JOURNALS = Path("/var/lib/stoker-catalog")
_Items = List[Tuple[str, str, Dict[str, Any]]]
_ABSENT = {"was": "absent"}


class Record(NamedTuple):
    """A file of an earlier version. ``items`` are kind, name and the state before."""

    path: Path
    items: _Items


def read_hook(folder: Path, group: str, owner: Sequence[str], entry: Mapping[str, Any]) -> Optional[Record]:
    """
    Return the record of a deployment by the hook ``group``, or None. ``folder`` is the directory of the hook.

    ``owner``: the stack and the resource, or the name of the config. Deployments without a stack shared the record of a
    name, so it counts only for the deployment whose config or inputs name its items.
    """
    path = folder / f"{_digest(owner)[:32]}.json"
    content = _load(path)
    if group not in _ITEMS or not isinstance(content, dict) or not content:
        return None
    record = Record(path, _ITEMS[group](content))
    words = json.dumps([entry.get("config"), entry.get("inputs")])
    is_own = len(owner) > 1 or any(json.dumps(name)[1:-1] in words for _, name, _ in record.items)
    return record if is_own else None


def read_journal(owner: Sequence[str]) -> Optional[Record]:
    """Return the journal of the catalog's steps for a resource of a stack, or None."""
    path = _JOURNALS / f"{_digest(owner)[:32]}.json"
    entries = _load(path)
    return Record(path, [_journal_item(entry) for entry in entries]) if isinstance(entries, list) else None


def read_shared_journal(server: str, schema: str) -> Dict[Tuple[str, str], Dict[str, Any]]:
    """Return the states before of the journal that the deployments of one catalog entry shared, by kind and name."""
    entries = _load(_JOURNALS / f"{_digest([server, _digest([schema])])[:32]}.json")
    items = [_journal_item(entry) for entry in entries] if isinstance(entries, list) else []
    return {(kind, name): before for kind, name, before in items}


def _digest(words: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def _load(path: Path) -> Any:
    try:
        return json.loads(files.read(path) or b"null")
    except (OSError, ValueError):
        return None


def _file(content: Mapping[str, Any]) -> _Items:
    before: Dict[str, Any] = dict(_ABSENT)
    if content.get("content") is not None:
        before = {
            "was": "file",
            "content": content["content"],
            "mode": content["mode"],
            "uid": content["owner"],
            "gid": content["group"],
        }
    return [("file", content["path"], before)]


def _service(content: Mapping[str, Any]) -> _Items:
    items: _Items = [("service", content["name"], {"active": content["active"], "enabled": content["enabled"]})]
    if content.get("unit"):
        import base64

        text = content.get("text")
        unit = {"was": "file", "mode": 0o644, "uid": 0, "gid": 0}
        before = dict(_ABSENT) if text is None else {**unit, "content": base64.b64encode(text.encode()).decode()}
        items.insert(0, ("file", f"/etc/systemd/system/{content['name']}", before))
    return items


def _packages(content: Mapping[str, Any]) -> _Items:
    items = [("package", name, {"is_installed": False}) for name in content.get("installed", ())]
    dependency = {"is_installed": False, "is_dependency": True}
    return items + [("package", name, dependency) for name in content.get("dependencies", ())]


def _manifest(content: Mapping[str, Any]) -> _Items:
    return [("manifest", content["manifest"], {})]


def _user(content: Mapping[str, Any]) -> _Items:
    return [("user", content["name"], dict(_ABSENT))]


#: The items of a hook's record, by the hook's group.
_ITEMS = {"file": _file, "kubelet": _manifest, "package": _packages, "service": _service, "user": _user}


def _journal_item(entry: Mapping[str, Any]) -> Tuple[str, str, Dict[str, Any]]:
    kind, name = entry["kind"], entry["name"]
    before = {key: value for key, value in entry.items() if key not in ("kind", "name")}
    if kind == "package":
        before = {"is_installed": False}
    if kind == "directory":
        before = dict(_ABSENT)
    if kind == "file":
        is_link = before.get("link") is not None
        state = "link" if is_link else "absent" if before.get("content") is None else "file"
        before = {"target": before.pop("link", ""), **before, "was": state}
    return kind, name, before
