"""Finds the scripts in a server's user data, which a deployment runs on an enrolled server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker_migrate.template.types import CONFIGS

#: Groups of configs that only a boot runs.
_UNGROUPED = (None, "Heat::Ungrouped", "ungrouped")


@dataclass(frozen=True)
class BootScript:
    """A script of user data: its text as an expression, or the config that has the text."""

    text: Any = None
    config: str | None = None


@dataclass(frozen=True)
class BootScripts:
    """The scripts of one server's user data, and the parts that no deployment can run."""

    scripts: tuple[BootScript, ...] = ()
    refused: tuple[str, ...] = ()

    def __add__(self, other: BootScripts) -> BootScripts:
        return BootScripts(self.scripts + other.scripts, self.refused + other.refused)


_NOTHING = BootScripts()


class BootScriptFinder:
    """Searches the user data of one template's servers."""

    def __init__(self, resources: Mapping[str, Any], read: Callable[[str], str | None]) -> None:
        """``read`` returns the content of a file that the template names, or None if it cannot be read."""
        self._resources = resources
        self._read = read

    def find(self, user_data: Any) -> BootScripts:
        """Return the scripts in ``user_data``, the value of the property."""
        if user_data in (None, ""):
            return _NOTHING
        if self._is_script(user_data):
            return BootScripts((BootScript(text=user_data),))
        name = _resource(user_data)
        if name in self._resources:
            return self._find_in_resource(str(name))
        return BootScripts(refused=("it is no script that begins with #!",))

    def _find_in_resource(self, name: str) -> BootScripts:
        definition = self._resources[name]
        properties = definition.get("properties") or {}
        if definition.get("type") in CONFIGS and self._is_script(properties.get("config")):
            return BootScripts((BootScript(config=name),))
        if definition.get("type") == "OS::Heat::MultipartMime":
            parts = [self.find(part.get("config")) for part in properties.get("parts") or () if isinstance(part, dict)]
            return sum(parts, _NOTHING)
        return BootScripts(refused=(f"{name} ({definition.get('type')}) is no script that begins with #!",))

    def _is_script(self, value: Any) -> bool:
        """Return whether the text begins with ``#!``; of a call, its template or its file."""
        if isinstance(value, str):
            return value.startswith("#!")
        if not isinstance(value, dict) or len(value) != 1:
            return False
        function, argument = next(iter(value.items()))
        if function == "get_file" and isinstance(argument, str):
            return (self._read(argument) or "").startswith("#!")
        if function.startswith("str_replace") and isinstance(argument, dict):
            return self._is_script(argument.get("template"))
        if function == "list_join" and isinstance(argument, list) and len(argument) > 1:
            return isinstance(argument[1], list) and bool(argument[1]) and self._is_script(argument[1][0])
        return False


def needs_group(definition: Mapping[str, Any]) -> bool:
    """Return whether a config needs a group before a deployment can run it."""
    return (definition.get("properties") or {}).get("group") in _UNGROUPED


def _resource(value: Any) -> str | None:
    if not isinstance(value, dict) or len(value) != 1:
        return None
    name = value.get("get_resource")
    path = value.get("get_attr")
    if isinstance(path, list) and len(path) == 2 and path[1] == "config":
        name = path[0]
    return name if isinstance(name, str) else None
