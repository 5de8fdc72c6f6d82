"""Resolves resource types with the ``resource_registry`` of environments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker_client.templates import locations
from stoker_client.templates.references import NESTED, NOT_FILES

NOTHING = "OS::Heat::None"


class TypeRegistry:
    """The mappings of types in several environments; later ones take precedence."""

    def __init__(self, environments: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """``environments``: the URL and the data of each."""
        self._targets: dict[str, str] = {}
        for url, data in environments:
            registry = data.get("resource_registry") or {}
            base_url = registry.get("base_url")
            base = locations.folder(base_url, url) if isinstance(base_url, str) else url
            for name, target in registry.items():
                if name not in NOT_FILES and isinstance(target, str):
                    self._targets[name] = target if "::" in target else locations.locate(target, base)

    def resolve(self, type_name: str, base: str) -> str:
        """Return the built-in type, or the URL of the template, that ``type_name`` means in the document ``base``."""
        seen = set()
        while type_name not in seen:
            seen.add(type_name)
            type_name = self._targets.get(type_name) or self._match(type_name) or type_name
        if "::" not in type_name and type_name.endswith(NESTED):
            return locations.locate(type_name, base)
        return type_name

    def _match(self, type_name: str) -> str | None:
        """Return the target of the longest pattern, such as ``OS::Neutron::*``."""
        patterns = [name for name in self._targets if name.endswith("*") and type_name.startswith(name[:-1])]
        target = self._targets[max(patterns, key=len)] if patterns else None
        if target is not None and target.endswith("*"):
            return target[:-1] + type_name[len(max(patterns, key=len)) - 1 :]
        return target


def is_template(resolved: str) -> bool:
    """Return whether a resolved type is a template."""
    return "://" in resolved and not locations.is_catalog(resolved)
