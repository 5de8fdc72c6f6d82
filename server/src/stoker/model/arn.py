"""
ARNs: the names that the CloudFormation API gives to stacks and their resources.

The format is Heat's: ``arn:openstack:heat::<project>:stacks/<name>/<id>[/resources/<resource>]``. Every part is
percent-encoded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from stoker.model.errors import Invalid

_SHAPE = re.compile(
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
        match = _SHAPE.fullmatch(text)
        if match is None:
            raise Invalid(f"{text[:200]!r} is no ARN: arn:openstack:heat::<project>:stacks/<name>/<id> is wanted")
        resource = match["resource"]
        return cls(
            unquote(match["project"]),
            unquote(match["name"]),
            unquote(match["id"]),
            None if resource is None else unquote(resource),
        )
