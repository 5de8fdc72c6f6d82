"""A software config: what a hook runs, with the inputs it takes and the outputs it gives. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

#: Heat's group of a config that names none: no hook runs it.
UNGROUPED = "Heat::Ungrouped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """``inputs`` and ``outputs`` are Heat's entries in stored form (``deployments.schema``), served as they are."""

    id: str
    project_id: str
    name: str | None = None
    group: str | None = None
    config: Any = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
