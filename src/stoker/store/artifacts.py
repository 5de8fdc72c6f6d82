"""Queries for artifacts: stored hooks and catalogue entries."""

from __future__ import annotations

import sqlalchemy as sa

from stoker.model.artifact import SITE, Artifact, ArtifactKind
from stoker.model.errors import Conflict
from stoker.store import statements
from stoker.store.repository import Repository
from stoker.store.schema import artifacts
from stoker.store.tx import Tx

_ARTIFACTS = Repository(Artifact, artifacts, unmapped=("content",))
#: The artifacts that a project can read: its own and those of the site.
_VISIBLE = (
    artifacts.c.kind == sa.bindparam("kind"),
    artifacts.c.project_id.in_((sa.bindparam("project_id"), SITE)),
)
_LIST = _ARTIFACTS.select(*_VISIBLE).order_by(artifacts.c.name, artifacts.c.version, artifacts.c.project_id)
_NAMED = (
    _ARTIFACTS.select(*_VISIBLE, artifacts.c.name == sa.bindparam("name"))
    # The project's own come first.
    .order_by(artifacts.c.project_id.desc(), artifacts.c.version.desc())
)
_NEWEST = _NAMED.limit(1)
_VERSION = _NAMED.where(artifacts.c.version == sa.bindparam("version")).limit(1)
_DIGEST = _ARTIFACTS.select(*_VISIBLE, artifacts.c.sha256 == sa.bindparam("sha256")).limit(1)
_OWN_NEWEST = _ARTIFACTS.by("kind", "project_id", "name").order_by(artifacts.c.version.desc()).limit(1)
_CONTENT = sa.select(artifacts.c.content).where(artifacts.c.id == sa.bindparam("id"))
_COUNT = statements.count(artifacts, "kind", "project_id")
_DELETE_IN_PROJECT = statements.delete(artifacts, "project_id")


def add(tx: Tx, new: Artifact, content: bytes) -> None:
    """Insert an artifact. Raises Conflict if its owner has another one with this name and version."""
    try:
        _ARTIFACTS.add(tx, new, content=content)
    except sa.exc.IntegrityError:
        raise Conflict(
            f"{new.name}/{new.version} exists already, and a version never changes: add the next version."
        ) from None


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
    return int(tx.scalar(_COUNT, {"kind": kind, "project_id": owner}) or 0)


def delete(tx: Tx, id: str) -> None:
    """Delete an artifact."""
    _ARTIFACTS.delete(tx, id)


def delete_in_project(tx: Tx, project_id: str) -> None:
    """Delete all artifacts of a project."""
    tx.execute_fast(_DELETE_IN_PROJECT, {"project_id": project_id})
