"""Types and serializers that several modules of the identity API share."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import UNSET, Meta

from stoker.http.fields import Answer, Body, Decoded, Id, Query, Text, fill
from stoker.identity.directory import DOMAIN_ID, DOMAIN_NAME
from stoker.model import principal as model

if TYPE_CHECKING:
    AccountName = str
else:

    def _name(value: Any) -> str:
        if not isinstance(value, str) or not value.strip() or len(value) > 255 or "\0" in value:
            raise ValueError("must be a string of 1 to 255 characters, not only spaces, without NUL")
        return value

    #: The name of a project, user or credential.
    AccountName = Decoded(
        "AccountName",
        (),
        {
            "parse": staticmethod(_name),
            "schema": {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$",
            },
        },
    )

#: A time with microseconds, as Keystone formats it.
FineTime = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")]
#: The passwords of users; the site's setting ``min_password_length`` demands more.
Password = Annotated[str, Meta(min_length=1, max_length=4096)]


class NameQuery(Query):
    name: Text | None = None


class NoLinks(Answer):
    """Keystone's links between pages. Stoker returns all entries in one page."""


class DomainName(Answer):
    id: Id
    name: Id


class Domain(DomainName):
    enabled: bool
    description: str


class RoleName(Answer):
    id: Id
    name: Id


class Project(Answer):
    id: Id
    name: str
    domain_id: Id
    description: str
    enabled: bool
    parent_id: Id | None
    is_domain: bool
    tags: list[str]
    options: dict[str, Any]


NO_LINKS = NoLinks()
DOMAIN = DomainName(id=DOMAIN_ID, name=DOMAIN_NAME)


def changes_of(body: Body) -> dict[str, Any]:
    """Return the members that a request to change an object contains."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not UNSET}


def time(moment: datetime) -> str:
    """Format a time as Keystone does: UTC, with microseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def serialize_project(project: model.Project) -> Project:
    return fill(Project, project, parent_id=project.domain_id, is_domain=False, tags=[], options={})
