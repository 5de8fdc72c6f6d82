"""The interface of a migrated template: the parameters that its parents must pass, or no longer pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class NewParameter:
    """A parameter that a migration adds."""

    name: str
    description: str
    #: Whether the value is the name of an enrolled server, which members of a group do not share.
    is_server_name: bool = False
    #: Whether only outputs use the parameter, so that it has an empty default.
    is_optional: bool = False

    def schema(self) -> dict[str, Any]:
        """Return the definition for the section ``parameters``."""
        default = {"default": ""} if self.is_optional else {}
        return {"type": "string", "description": self.description, **default}


@dataclass
class Interface:
    """The difference between the parameters of a template before and after its migration."""

    added: dict[str, NewParameter] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
