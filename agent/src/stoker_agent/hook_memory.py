"""
What the runs of a deployment have changed on this machine, and how it was before.

All hooks and the steps of the catalog share one directory, with a file for each item (a file, a package, a unit) of
each deployment. The names of the files order them: an item that several deployments have changed has one entry for each
of them. The undo of one deployment leaves such an item to the next one, whose own undo then restores what was there
before both.

A trigger's run records nothing: nothing undoes it, and it must not alter what the undo of a deployment restores.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from stoker_agent import files
from stoker_agent.runs import is_id

#: The inputs that identify the deployment's resource.
_RESOURCE = ("deploy_stack_id", "deploy_resource_name")
#: The resource of a deployment without a stack.
_NO_RESOURCE = "0" * 16
#: The variable of the environment with the arguments of ``Memory``, for the processes of a hook.
_VARIABLE = "STOKER_MEMORY"
#: Largest file whose former content is kept.
_LONGEST_CONTENT = 1024 * 1024


class Item(NamedTuple):
    """One thing that the runs of a deployment have changed, or use. ``before`` says how it was before the first run."""

    path: Path
    kind: str
    name: str
    before: Dict[str, Any]


class _Key(NamedTuple):
    """What the name of an item's file consists of. ``item`` is a digest of its kind and name."""

    #: Twelve digits, so that names are in the order of numbers.
    number: str
    deployment: str
    resource: str
    item: str

    @classmethod
    def of(cls, path: Path) -> "_Key":
        """Return the key of an item's file."""
        return cls(*path.stem.split("."))

    @property
    def file_name(self) -> str:
        """The name of the item's file."""
        return f"{'.'.join(self)}.json"


class Memory:
    """
    The items of one deployment, in the directory ``folder`` of all deployments.

    ``resource`` identifies the deployment's resource: a deployment that replaces another one of the same resource takes
    over its items.
    """

    def __init__(
        self, folder: Path, deployment: str, resource: str = _NO_RESOURCE, *, is_trigger: bool = False
    ) -> None:
        self._folder, self._deployment, self._resource = folder, deployment, resource
        self._is_trigger = is_trigger

    @classmethod
    def of(cls, entry: Mapping[str, Any], inputs: Mapping[str, Any], state: Path) -> "Memory":
        """Return the memory of a document's entry. ``state`` is the directory of all hooks."""
        owner = [str(inputs.get(name) or "") for name in _RESOURCE]
        resource = _digest(*owner) if all(owner) else _NO_RESOURCE
        deployment = str(entry.get("deployment_id") or "")
        if not is_id(deployment):  # the document of another service
            deployment = resource if all(owner) else _digest(str(entry.get("name") or entry["id"]))
        return cls(state / "memory", deployment, resource, is_trigger=bool(entry.get("trigger_id")))

    @classmethod
    def of_environment(cls) -> "Memory":
        """Return the memory of the run whose hook has started this process."""
        folder, deployment, resource, is_trigger = json.loads(os.environ[_VARIABLE])
        return cls(Path(folder), deployment, resource, is_trigger=is_trigger)

    def to_environment(self) -> Dict[str, str]:
        """Return the variable that ``of_environment`` reads."""
        return {_VARIABLE: json.dumps([str(self._folder), self._deployment, self._resource, self._is_trigger])}

    def remember(self, kind: str, name: str, **before: Any) -> None:
        """
        Record how an item is before a run changes or uses it. The first record of an item counts. Raises OSError.

        A deployment records each item that its config describes, also an item that needs no change: otherwise the undo
        of another deployment would remove the item.
        """
        if self._is_trigger:
            return
        with self._lock():
            if not any((item.kind, item.name) == (kind, name) for item in self._own()):
                present = self._list_files()
                number = int(present[-1][1].number) + 1 if present else 1
                key = _Key(f"{number:012}", self._deployment, self._resource, _digest(kind, name))
                content = json.dumps({"kind": kind, "name": name, "before": before})
                files.write(self._folder / key.file_name, content.encode())

    def list(self, *kinds: str) -> List[Item]:
        """Return the deployment's items of these kinds, or of all, the first recorded one first."""
        if self._is_trigger or not self._folder.is_dir():
            return []
        with self._lock():
            return [item for item in self._own() if not kinds or item.kind in kinds]

    def release(self, item: Item) -> bool:
        """
        Return whether the deployment has to undo its change of an item.

        It has not if another deployment has changed the item later, or uses it: that one then restores what was there
        before this one. Raises OSError.
        """
        with self._lock():
            own = _Key.of(item.path)
            later = [path for path, key in self._others(own.item) if key.number > own.number]
            if not later:
                return True
            item.path.replace(later[0])
            return False

    def forget(self, item: Item) -> None:
        """Remove an item whose change is undone. Raises OSError."""
        item.path.unlink(missing_ok=True)

    def is_used(self, kind: str, name: str) -> bool:
        """Return whether another deployment has recorded an item."""
        return bool(self._others(_digest(kind, name)))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep the runs of other deployments out. Raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(str(self._folder / "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _list_files(self) -> List[Tuple[Path, _Key]]:
        """Return the files of the items of all deployments, in their order."""
        return [(path, _Key.of(path)) for path in sorted(self._folder.glob("[0-9]*.json"))]

    def _others(self, item: str) -> List[Tuple[Path, _Key]]:
        """Return the files of an item that belong to other deployments."""
        return [
            (path, key) for path, key in self._list_files() if key.item == item and key.deployment != self._deployment
        ]

    def _own(self) -> List[Item]:
        """Return the deployment's items, with those of the deployment that it replaces."""
        items: Dict[str, Item] = {}
        for path, key in self._list_files():
            is_own = key.deployment == self._deployment
            if not is_own and (key.resource != self._resource or key.resource == _NO_RESOURCE):
                continue
            if key.item in items:  # of both; the older one says how the item was at first
                path.unlink()
                continue
            own = path if is_own else path.replace(self._folder / key._replace(deployment=self._deployment).file_name)
            content = json.loads(own.read_text(encoding="utf-8"))
            items[key.item] = Item(own, content["kind"], content["name"], content["before"])
        return list(items.values())


def describe_path(path: Path) -> Dict[str, Any]:
    """Return what is at a path, with its content and rights. A file above 1 MiB has no content. Raises OSError."""
    present = files.inspect(path)
    before: Dict[str, Any] = {"was": present.kind}
    if present.kind in ("file", "directory"):
        before.update(mode=present.mode, uid=present.uid, gid=present.gid)
    if present.kind == "file":
        is_short = present.size <= _LONGEST_CONTENT
        before["content"] = base64.b64encode(files.read(path) or b"").decode() if is_short else None
    if present.kind == "link":
        before["target"] = present.target
    return before


def restore_path(path: Path, before: Mapping[str, Any]) -> str:
    """
    Restore what was at a path. Return what this changed: ``removed``, ``restored``, or "" for nothing. Raises OSError.

    A file whose content was not kept, and a directory that the deployment has not made (``made``), stay as they are.
    """
    effect, was = effect_of_restoring(path, before), before["was"]
    if effect == "removed":
        files.remove(path)
    elif effect and was == "directory":
        files.make_folder(path, before["mode"], before["uid"], before["gid"])
    elif effect and was == "link":
        files.link(path, before["target"])
    elif effect:
        content = base64.b64decode(before["content"])
        files.write(path, content, before["mode"], uid=before["uid"], gid=before["gid"], folder_mode=0o755)
    return effect


def effect_of_restoring(path: Path, before: Mapping[str, Any]) -> str:
    """Return what ``restore_path`` would return."""
    present = describe_path(path)
    if present == {key: value for key, value in before.items() if key != "made"}:
        return ""
    if before["was"] == "absent":
        is_foreign = present["was"] == "directory" and before.get("made") != "directory"
        return "" if is_foreign else "removed"
    return "" if before["was"] == "file" and before.get("content") is None else "restored"


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()[:16]
