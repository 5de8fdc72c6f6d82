"""A scope for templates: plain dictionaries behind the real protocol."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from stoker import hot
from stoker.hot.scope import Budget
from stoker.hot.words import clip
from stoker.model.errors import UserParameterMissing


@dataclass
class World:
    """Implements the scope protocol of templates."""

    version: str = "2018-08-31"
    parameters: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    facades: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, tuple[Any, ...]]] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)

    def parameter(self, name: str) -> Any:
        if name not in self.parameters:
            raise UserParameterMissing(f"The Parameter ({clip(name)}) was not provided.")
        return self.parameters[name]

    def resource_id(self, name: str) -> Any:
        return self.ids[name]

    def attribute(self, name: str, attribute: str, path: tuple[Any, ...]) -> Any:
        self.asked.append((name, attribute, path))
        if attribute == hot.ALL_ATTRIBUTES:
            return self.attributes[name]
        return hot.select(self.attributes[name].get(attribute), path)

    def file(self, name: str) -> str:
        return self.files[name]

    def facade(self, part: str) -> Any:
        return self.facades[part]
