"""Artifacts: immutable, versioned content that users store for later use: hooks and catalog entries."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from stoker.model.ids import SITE


class ArtifactKind(StrEnum):
    """What an artifact is."""

    HOOK = "hook"
    ENTRY = "catalog_entry"


class Artifact(Struct, frozen=True, kw_only=True):
    """An artifact without its content. Nothing changes an artifact; a change is a new version."""

    id: str
    #: The project that owns the artifact; SITE: every project can read it.
    project_id: str
    kind: ArtifactKind
    name: str
    version: int
    #: SHA-256 of the content, as hexadecimal digits.
    sha256: str
    #: Length of the content in bytes.
    size: int
    description: str = ""
    #: Name of the user who stored the artifact.
    created_by: str | None = None
    created_at: datetime

    @property
    def is_public(self) -> bool:
        """Whether every project can read the artifact."""
        return self.project_id == SITE
