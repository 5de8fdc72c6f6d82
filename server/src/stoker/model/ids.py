"""
Ids of all objects that Stoker creates, which are UUIDs as text, and names that contain them: of objects and queues, and
ARNs, which the CloudFormation API gives to stacks and their resources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote
from uuid import UUID

from stoker.model.errors import Invalid

#: In place of a project's id: the whole site.
SITE = ""
_REMOTE_NAME = re.compile(r"(.{36})(?:-([0-9]+))?", re.DOTALL)


def is_id(text: str) -> bool:
    """Return whether the text has the form of an id: a UUID in lower case with hyphens."""
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def remote_name(id: str, run: str) -> str:
    """
    Return the name of the object or queue of a server, or for the results of a resource or deployment.

    ``run`` is the number of the run that writes there; empty: all runs do.
    """
    return f"{id}-{run}" if run else id


def split_remote_name(name: str) -> tuple[str, str | None]:
    """Return the id and the number of the run in a name of ``remote_name``; (name, None) for any other name."""
    match = _REMOTE_NAME.fullmatch(name)
    return (match[1], match[2]) if match is not None and is_id(match[1]) else (name, None)


_ARN = re.compile(
    r"arn:openstack:heat::(?P<project>[^:/]+):stacks/(?P<name>[^/]+)/(?P<id>[^/]+)(/resources/(?P<resource>[^/]+))?"
)


@dataclass(frozen=True, slots=True)
class Arn:
    """The ARN of a stack or, with ``resource``, of one of its resources. ``str()`` returns the encoded form."""

    project_id: str
    stack_name: str
    stack_id: str
    resource: str | None = None

    def __str__(self) -> str:
        parts = (self.project_id, self.stack_name, self.stack_id)
        project, name, id = (quote(part, safe="") for part in parts)
        stack = f"arn:openstack:heat::{project}:stacks/{name}/{id}"
        return stack if self.resource is None else f"{stack}/resources/{quote(self.resource, safe='')}"

    @classmethod
    def parse(cls, text: str) -> Arn:
        """Parse an encoded ARN. Raises Invalid if the text is not an ARN of a stack or resource."""
        match = _ARN.fullmatch(text)
        if match is None:
            raise Invalid(f"{text[:200]!r} is no ARN: arn:openstack:heat::<project>:stacks/<name>/<id> is wanted")
        resource = match["resource"]
        return cls(
            unquote(match["project"]),
            unquote(match["name"]),
            unquote(match["id"]),
            None if resource is None else unquote(resource),
        )
