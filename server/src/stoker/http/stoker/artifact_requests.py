"""Requests about artifacts: whose they are, and who may change them."""

from __future__ import annotations

from stoker.http.request import RequestContext
from stoker.model.artifact import SITE, Artifact, ArtifactKind
from stoker.model.errors import EntityNotFound, Forbidden
from stoker.store import artifacts
from stoker.store.tx import Tx

_NOUNS = {ArtifactKind.HOOK: "hook", ArtifactKind.ENTRY: "catalog entry"}


def owner_of(request: RequestContext, *, public: bool) -> str:
    """Return the owner of a new artifact. Raises Forbidden for a public one, unless the user administers the site."""
    if public and not request.user.site_admin:
        raise Forbidden("Only an administrator of the site stores what every project may use.")
    return SITE if public else request.project


def require_visible(tx: Tx, request: RequestContext, kind: ArtifactKind, name: str, version: str) -> Artifact:
    """Return an artifact that the project can read. Raises EntityNotFound."""
    number = int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0
    artifact = artifacts.find(tx, kind, request.project, name, number)
    if artifact is None:
        raise EntityNotFound(f"There is no {_NOUNS[kind]} {name}/{version}.")
    return artifact


def require_owned(request: RequestContext, artifact: Artifact) -> None:
    """Raise Forbidden unless the user may delete the artifact."""
    if artifact.is_public and not request.user.site_admin:
        raise Forbidden(f"{artifact.name}/{artifact.version} belongs to the site: only its administrators delete it.")
