"""Queries for artifacts: stored hooks and catalog entries."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.errors import Conflict
from stoker.model.ids import SITE
from stoker.store.query import execute, scalar
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_ARTIFACTS = Repository(Artifact, "artifacts")
delete = _ARTIFACTS.delete
#: The artifacts that a project can read: its own and those of the site.
_VISIBLE = f"kind = :kind AND project_id IN (:project_id, '{SITE}')"
#: The project's own come first.
_OWN_FIRST = "ORDER BY project_id DESC, version DESC LIMIT 1"
#: Return the artifacts that a project can read, sorted by name and version.
list_visible: Callable[[Tx, ArtifactKind, str], list[Artifact]] = _ARTIFACTS.lister(
    f"{_VISIBLE} ORDER BY name, version, project_id"
)
_find_newest: Callable[[Tx, ArtifactKind, str, str], Artifact | None] = _ARTIFACTS.finder(
    f"{_VISIBLE} AND name = :name {_OWN_FIRST}"
)
_find_version: Callable[[Tx, ArtifactKind, str, str, int], Artifact | None] = _ARTIFACTS.finder(
    f"{_VISIBLE} AND name = :name AND version = :version {_OWN_FIRST}"
)
#: Return an artifact with a digest that the project can read, or None.
find_by_digest: Callable[[Tx, ArtifactKind, str, str], Artifact | None] = _ARTIFACTS.finder(
    f"{_VISIBLE} AND sha256 = :sha256 LIMIT 1"
)
#: Return the newest artifact of one owner, which is a project or SITE, with a name.
find_newest_own: Callable[[Tx, ArtifactKind, str, str], Artifact | None] = _ARTIFACTS.finder(
    "kind = :kind AND project_id = :project_id AND name = :name ORDER BY version DESC LIMIT 1"
)
_read_content: Callable[[Tx, str], bytes] = scalar("SELECT content FROM artifacts WHERE id = :id")
#: Return the number of artifacts of one owner.
count: Callable[[Tx, ArtifactKind, str], int] = scalar(
    "SELECT count(*) FROM artifacts WHERE kind = :kind AND project_id = :project_id"
)
delete_in_project: Callable[[Tx, str], None] = execute("DELETE FROM artifacts WHERE project_id = :project_id")


def add(tx: Tx, new: Artifact, content: bytes) -> None:
    """Insert an artifact. Raises Conflict if its owner has another one with this name and version."""
    if not _ARTIFACTS.add(tx, new, unless_exists=True, content=content):
        raise Conflict(f"{new.name}/{new.version} exists already, and a version never changes: add the next version.")


def find(tx: Tx, kind: ArtifactKind, project_id: str, name: str, version: int | None = None) -> Artifact | None:
    """
    Return the artifact that a name refers to in a project, or None. Without a version: the newest one.

    The project's own artifacts take precedence over those of the site.
    """
    if version is None:
        return _find_newest(tx, kind, project_id, name)
    return _find_version(tx, kind, project_id, name, version)


def content(tx: Tx, id: str) -> bytes:
    """Return the content of an artifact."""
    return bytes(_read_content(tx, id))
