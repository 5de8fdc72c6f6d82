"""Queries for artifacts: stored hooks and catalog entries."""

from __future__ import annotations

from stoker.model.artifact import SITE, Artifact, ArtifactKind
from stoker.model.errors import Conflict
from stoker.store.repository import Repository
from stoker.store.sql import delete as delete_by
from stoker.store.sql import sql
from stoker.store.tx import Tx

_ARTIFACTS = Repository(Artifact, "artifacts")
#: The artifacts that a project can read: its own and those of the site.
_VISIBLE = f"kind = :kind AND project_id IN (:project_id, '{SITE}')"
_LIST = _ARTIFACTS.select(f"{_VISIBLE} ORDER BY name, version, project_id")
#: The project's own come first.
_OWN_FIRST = "ORDER BY project_id DESC, version DESC LIMIT 1"
_NEWEST = _ARTIFACTS.select(f"{_VISIBLE} AND name = :name {_OWN_FIRST}")
_VERSION = _ARTIFACTS.select(f"{_VISIBLE} AND name = :name AND version = :version {_OWN_FIRST}")
_DIGEST = _ARTIFACTS.select(f"{_VISIBLE} AND sha256 = :sha256 LIMIT 1")
_OWN_NEWEST = _ARTIFACTS.select(
    "kind = :kind AND project_id = :project_id AND name = :name ORDER BY version DESC LIMIT 1"
)
_CONTENT = sql("SELECT content FROM artifacts WHERE id = :id")
_COUNT = sql("SELECT count(*) FROM artifacts WHERE kind = :kind AND project_id = :project_id")
_DELETE_IN_PROJECT = delete_by("artifacts", "project_id")


def add(tx: Tx, new: Artifact, content: bytes) -> None:
    """Insert an artifact. Raises Conflict if its owner has another one with this name and version."""
    if not _ARTIFACTS.add(tx, new, unless_exists=True, content=content):
        raise Conflict(f"{new.name}/{new.version} exists already, and a version never changes: add the next version.")


def list_visible(tx: Tx, kind: ArtifactKind, project_id: str) -> list[Artifact]:
    """Return the artifacts that a project can read, sorted by name and version."""
    return _ARTIFACTS.all(tx, _LIST, {"kind": kind, "project_id": project_id})


def find(tx: Tx, kind: ArtifactKind, project_id: str, name: str, version: int | None = None) -> Artifact | None:
    """
    Return the artifact that a name refers to in a project, or None. Without a version: the newest one.

    The project's own artifacts take precedence over those of the site.
    """
    values = {"kind": kind, "project_id": project_id, "name": name}
    if version is None:
        return _ARTIFACTS.first(tx, _NEWEST, values)
    return _ARTIFACTS.first(tx, _VERSION, {**values, "version": version})


def find_by_digest(tx: Tx, kind: ArtifactKind, project_id: str, sha256: str) -> Artifact | None:
    """Return an artifact with this digest that the project can read, or None."""
    return _ARTIFACTS.first(tx, _DIGEST, {"kind": kind, "project_id": project_id, "sha256": sha256})


def find_newest_own(tx: Tx, kind: ArtifactKind, owner: str, name: str) -> Artifact | None:
    """Return the newest artifact with this name of one owner, which is a project or SITE, or None."""
    return _ARTIFACTS.first(tx, _OWN_NEWEST, {"kind": kind, "project_id": owner, "name": name})


def content(tx: Tx, id: str) -> bytes:
    """Return the content of an artifact."""
    return bytes(tx.scalar(_CONTENT, {"id": id}))


def count(tx: Tx, kind: ArtifactKind, owner: str) -> int:
    """Return the number of artifacts of one owner."""
    return int(tx.scalar(_COUNT, {"kind": kind, "project_id": owner}))


def delete(tx: Tx, id: str) -> None:
    """Delete an artifact."""
    _ARTIFACTS.delete(tx, id)


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete all artifacts of a project."""
    tx.execute_fast(_DELETE_IN_PROJECT, {"project_id": project_id})
