"""
The resource registry of an environment: maps types to other types.

An entry maps a type, given by name or prefix (``OS::Neutron::*``), to another type, or to null, which removes the type.
The sub-key ``resources`` does the same for resources with a given name or name pattern.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stoker.hot.flaw import Path, flaw, map_at
from stoker.hot.regex import BadPattern, compile_glob
from stoker.hot.words import kind_of
from stoker.model.errors import Invalid

_RESOURCES = "resources"
#: Keys below a resource's name that are not types.
_CONTROLS = {
    "hooks": ("pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete"),
    "restricted_actions": ("update", "replace"),
}
_MAX_HOPS = 20
#: Maximum number of patterns in one section: each is compared with every resource.
MAX_GLOBS = 100
_GLOB_SIGNS = frozenset("*?[")
#: Maximum length of a resource's name in characters.
_LONGEST_NAME = 255


class Registry:
    """An immutable registry."""

    __slots__ = ("_entries", "_general", "_globs", "_named")

    def __init__(self, entries: Mapping[str, Any] | None = None) -> None:
        self._entries: Mapping[str, Any] = entries or {}
        self._named: Mapping[str, Mapping[str, Any]] = self._entries.get(_RESOURCES) or {}
        #: The compiled patterns in ``_named``.
        self._globs = {name: compile_glob(name) for name in self._named if _is_glob(name)}
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

    def merge(self, later: Registry) -> Registry:
        """Merge two sections entry by entry; the later one wins."""
        return Registry({**self._entries, **later._entries})

    def resolve(self, type_name: str, resource_name: str = "") -> str | None:
        """Return the mapped type, or ``type_name`` itself; None if it was removed. Raises Invalid for a cycle."""
        current = type_name
        for _ in range(_MAX_HOPS):
            target = self._hop(current, resource_name)
            if target is None or target == current:
                return target
            current = target
        raise Invalid(f"resource_registry: the mappings of {type_name} go round in a circle")

    def _hop(self, type_name: str, resource_name: str) -> str | None:
        for entries in self._layers(resource_name):
            entry, target = _lookup(entries, type_name)
            if entry:
                return target
        return type_name

    def _layers(self, resource_name: str) -> Iterator[Mapping[str, Any]]:
        """The applicable entries, most specific first: for this name, for patterns, for all resources."""
        if resource_name in self._named:
            yield self._named[resource_name]
        for pattern, entries in self._named.items():
            if pattern != resource_name and self._covers(pattern, resource_name):
                yield entries
        yield self._general

    def controls(self, resource_name: str, key: str) -> tuple[str, ...]:
        """
        Return what is set for a resource under a key of ``_CONTROLS``: its breakpoints (``hooks``), or the actions that
        an update must not take on it (``restricted_actions``: ``update``, ``replace``).
        """
        controls: dict[str, None] = {}
        for pattern, entries in self._named.items():
            if self._covers(pattern, resource_name):
                values = entries.get(key) or ()
                controls |= dict.fromkeys([values] if isinstance(values, str) else values)
        return tuple(controls)

    def _covers(self, name: str, resource_name: str) -> bool:
        """Whether ``name``, which may be a pattern, matches the resource."""
        glob = self._globs.get(name)
        return name == resource_name or (glob is not None and glob.matches_whole(resource_name))

    def below(self, resource_name: str) -> Registry:
        """The registry for a resource's nested stack: general entries, and those for the nested stack's resources."""
        inner: dict[str, Any] = {}
        # Entries for the exact name come last, so that they take precedence.
        for name, entries in sorted(self._named.items(), key=lambda entry: entry[0] == resource_name):
            if self._covers(name, resource_name):
                inner |= _inner(entries)
        return Registry({**self._general, _RESOURCES: inner})

    def to_json(self) -> dict[str, Any]:
        """The section as supplied."""
        return {**self._entries, _RESOURCES: dict(self._named)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Registry) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # object declares a method

    def __repr__(self) -> str:
        return f"Registry({self.to_json()!r})"


def _lookup(entries: Mapping[str, Any], type_name: str) -> tuple[bool, str | None]:
    """Whether an entry maps the type, and to what."""
    nearest = type_name if type_name in entries and type_name not in _CONTROLS else _wildcard(entries, type_name)
    if nearest is None:
        return False, None
    target = entries[nearest]
    if isinstance(target, Mapping):
        return False, None  # entries for a resource of that name in a nested stack
    if nearest != type_name and isinstance(target, str) and target.endswith("*"):
        return True, target[:-1] + type_name[len(nearest) - 1 :]
    return True, target


def _wildcard(entries: Mapping[str, Any], type_name: str) -> str | None:
    """The longest prefix (``OS::Neutron::*``) that covers the type, or None."""
    wildcards = [name for name in entries if name.endswith("*") and type_name.startswith(name[:-1])]
    return max(wildcards, key=len, default=None)


def _inner(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {key: entry for key, entry in entries.items() if isinstance(entry, Mapping)}


def _is_glob(name: str) -> bool:
    return not _GLOB_SIGNS.isdisjoint(name)


def _check_resources(value: Any, path: Path) -> None:
    _check_globs(map_at({} if value is None else value, path), path)
    for name, entries in map_at({} if value is None else value, path).items():
        _check_globs(_inner(map_at(entries, (*path, name))), (*path, name))
        for key, entry in map_at(entries, (*path, name)).items():
            place = (*path, name, key)
            if key in _CONTROLS:
                _check_control(entry, place)
            elif isinstance(entry, dict):
                _check_resources({key: entry}, (*path, name))
            elif entry is not None and not isinstance(entry, str):
                raise flaw(place, f"a type's name or null is needed, not {kind_of(entry)}", Invalid)


def _check_globs(entries: Mapping[str, Any], path: Path) -> None:
    globs = [name for name in entries if _is_glob(name)]
    if len(globs) > MAX_GLOBS:
        raise flaw(path, f"at most {MAX_GLOBS} patterns may stand for resources' names, not {len(globs)}", Invalid)
    for name in globs:
        if len(name) > _LONGEST_NAME:
            raise flaw((*path, name), f"a pattern for names has at most {_LONGEST_NAME} characters", Invalid)
        try:
            compile_glob(name)
        except BadPattern as error:
            raise flaw((*path, name), str(error), Invalid) from None


def _check_control(entry: Any, path: Path) -> None:
    words = [entry] if isinstance(entry, str) else entry
    allowed = _CONTROLS[str(path[-1])]
    if not isinstance(words, list) or not all(word in allowed for word in words):
        raise flaw(path, f"one or a list of these is needed: {', '.join(allowed)}", Invalid)
