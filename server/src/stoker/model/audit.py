"""Entries of the audit log: what users did, what ran on servers, and what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class Outcome(StrEnum):
    """The outcome of an audited action."""

    ALLOWED = "ALLOWED"
    REFUSED = "REFUSED"


class Decision(Struct, frozen=True, kw_only=True):
    """
    One audited action.

    ``project_id`` is the project of the object that the action concerns; SITE for users, projects and failed logins.
    The names remain when the objects are gone.
    """

    project_id: str
    actor: str | None
    #: The action in words, such as ``run CREATE``.
    action: str
    outcome: Outcome
    reason: str
    server_id: str | None = None
    deployment_id: str | None = None
    stack_id: str | None = None
    server_name: str | None = None
    stack_name: str | None = None
    resource_name: str | None = None
    config_name: str | None = None


@dataclass(slots=True)
class Subject:
    """The objects that a request concerns, in the terms of the audit log. ``detail`` describes any other object."""

    detail: str = ""
    server_id: str | None = None
    server_name: str | None = None
    deployment_id: str | None = None
    stack_id: str | None = None
    stack_name: str | None = None
    resource_name: str | None = None
    config_name: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A decision as stored in the audit log. ``seq`` increases with each entry."""

    seq: int
    at: datetime
    decision: Decision
