"""
The resource registry: which type a template's type really means.

An entry maps a type to another one, by name or by its beginning (``OS::Neutron::*``), or to null, which removes it.
The sub-key ``resources`` does the same for the resources of a name or pattern only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from stoker.hot.flaw import flaw
from stoker.hot.paths import Path
from stoker.hot.shapes import map_at
from stoker.hot.words import kind_of
from stoker.model.errors import Invalid

_RESOURCES = "resources"
#: Keys below a resource's name that are no types.
_CONTROLS = {
    "hooks": ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete"),
    "restricted_actions": ("update", "replace"),
}
_MAX_HOPS = 20


class Registry:
    """Immutable. Wins over the ``base`` it is laid ``over``, as a user's entries win over the site's."""

    __slots__ = ("_base", "_entries", "_general", "_named")

    def __init__(self, entries: Mapping[str, Any] | None = None, base: Registry | None = None) -> None:
        self._entries: Mapping[str, Any] = entries or {}
        self._base = base
        self._named: Mapping[str, Mapping[str, Any]] = self._entries.get(_RESOURCES) or {}
        self._general = {name: target for name, target in self._entries.items() if name not in (_RESOURCES, "base_url")}

    @classmethod
    def parse(cls, entries: Mapping[str, Any], path: Path = ()) -> Registry:
        """Check the section ``resource_registry``. Raises a flaw."""
        for name, value in entries.items():
            if name == _RESOURCES:
                _check_resources(value, (*path, name))
            elif value is not None and (not isinstance(value, str) or not value):
                raise flaw((*path, name), f"a type's name or null is needed, not {kind_of(value)}", Invalid)
        return cls(entries)

    def over(self, base: Registry) -> Registry:
        """This registry with ``base`` asked where it says nothing."""
        return Registry(self._entries, base if self._base is None else self._base.over(base))

    def merged(self, later: Registry) -> Registry:
        """Both as one section, entry by entry; the later one wins."""
        return Registry({**self._entries, **later._entries}, self._base)

    def resolve(self, type_name: str, resource_name: str = "") -> str | None:
        """The type that is meant, ``type_name`` itself when nothing maps it; None when it was removed."""
        current = type_name
        for _ in range(_MAX_HOPS):
            target = self._hop(current, resource_name)
            if target is None or target == current:
                return target
            current = target
        raise Invalid(f"resource_registry: the mappings of {type_name} go round in a circle")

    def _hop(self, type_name: str, resource_name: str) -> str | None:
        for entries in self._layers(resource_name):
            found, target = _lookup(entries, type_name)
            if found:
                return target
        return type_name

    def _layers(self, resource_name: str) -> Iterator[Mapping[str, Any]]:
        """What to ask, the more telling first: for this name, for a pattern of it, for all; then the base."""
        if resource_name in self._named:
            yield self._named[resource_name]
        for pattern, entries in self._named.items():
            if pattern != resource_name and fnmatchcase(resource_name, pattern):
                yield entries
        yield self._general
        if self._base is not None:
            yield from self._base._layers(resource_name)

    def hooks(self, resource_name: str) -> tuple[str, ...]:
        """The breakpoints set for a resource."""
        return self._controls(resource_name, "hooks")

    def restricted_actions(self, resource_name: str) -> tuple[str, ...]:
        """What an update may not do to a resource: ``update``, ``replace``."""
        return self._controls(resource_name, "restricted_actions")

    def _controls(self, resource_name: str, key: str) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for pattern, entries in self._named.items():
            if pattern == resource_name or fnmatchcase(resource_name, pattern):
                said = entries.get(key) or ()
                found |= dict.fromkeys([said] if isinstance(said, str) else said)
        base = self._base._controls(resource_name, key) if self._base is not None else ()
        return tuple(dict.fromkeys((*found, *base)))

    def below(self, resource_name: str) -> Registry:
        """What the nested stack of that resource goes by: the same for all, and what is said of its own resources."""
        inner: dict[str, Any] = {}
        # What is said of the very name comes last, and wins.
        for name, entries in sorted(self._named.items(), key=lambda entry: entry[0] == resource_name):
            if name == resource_name or fnmatchcase(resource_name, name):
                inner |= {key: entry for key, entry in entries.items() if isinstance(entry, Mapping)}
        base = self._base.below(resource_name) if self._base is not None else None
        return Registry({**self._general, _RESOURCES: inner}, base)

    def to_json(self) -> dict[str, Any]:
        """The section as handed in; what lies below it is the site's and not shown."""
        return {**self._entries, _RESOURCES: dict(self._named)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Registry) and (self.to_json(), self._base) == (other.to_json(), other._base)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Registry({self.to_json()!r})"


def _lookup(entries: Mapping[str, Any], type_name: str) -> tuple[bool, str | None]:
    if type_name in entries and type_name not in _CONTROLS:
        target = entries[type_name]
        # A map is the same section for a nested stack's resource of that name.
        return (False, None) if isinstance(target, Mapping) else (True, target)
    wildcards = [name for name in entries if name.endswith("*") and type_name.startswith(name[:-1])]
    if not wildcards:
        return False, None
    nearest = max(wildcards, key=len)
    target = entries[nearest]
    if isinstance(target, str) and target.endswith("*"):
        return True, target[:-1] + type_name[len(nearest) - 1 :]
    return (False, None) if isinstance(target, Mapping) else (True, target)


def _check_resources(value: Any, path: Path) -> None:
    for name, entries in map_at({} if value is None else value, path).items():
        for key, entry in map_at(entries, (*path, name)).items():
            place = (*path, name, key)
            if key in _CONTROLS:
                _check_control(entry, place)
            elif isinstance(entry, dict):
                _check_resources({key: entry}, (*path, name))
            elif entry is not None and not isinstance(entry, str):
                raise flaw(place, f"a type's name or null is needed, not {kind_of(entry)}", Invalid)


def _check_control(entry: Any, path: Path) -> None:
    words = [entry] if isinstance(entry, str) else entry
    known = _CONTROLS[str(path[-1])]
    if not isinstance(words, list) or not all(word in known for word in words):
        raise flaw(path, f"one or a list of these is needed: {', '.join(known)}", Invalid)
