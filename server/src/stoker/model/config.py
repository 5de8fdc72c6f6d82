"""Software configs: immutable content for a hook, with declared inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from operator import itemgetter, methodcaller
from typing import Any

from msgspec import Struct, field

#: Heat's group for a config that names none. No hook runs this group.
UNGROUPED = "Heat::Ungrouped"
#: The group of configs that have a part for each action.
COMPONENT = "component"
#: An input that every derived config has, including those that Heat's clients derive, and that no other config uses.
_DERIVED = "deploy_server_id"
#: The types of inputs and outputs, each with the type of HOT's parameters with the same values.
INPUT_TYPES: Mapping[str, str] = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
#: Inputs that Stoker adds itself. A client that knows their values can report a result.
CREDENTIALS = frozenset(("deploy_password", "deploy_signal_id", "deploy_url_signature"))
_NAME, _SECRET = itemgetter("name"), methodcaller("get", "secret")


class Config(Struct, frozen=True, kw_only=True):
    """
    A software config. ``inputs`` and ``outputs`` are Heat's entries in stored form (``deployments.schema``), and the
    API returns them unchanged.
    """

    id: str
    project_id: str
    name: str | None = None
    group: str | None = None
    config: Any = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
    #: Stoker created the config for the run of a deployment, and deletes it with the last deployment that runs it.
    is_owned: bool = False

    @property
    def is_derived(self) -> bool:
        """Whether the config is the copy that one run executes, with the deployment's input values."""
        return _DERIVED in map(_NAME, self.inputs)

    @property
    def has_secrets(self) -> bool:
        """Whether an input is marked as secret."""
        return any(map(_SECRET, self.inputs))
