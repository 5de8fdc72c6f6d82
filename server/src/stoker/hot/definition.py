"""The definition of one resource in a template, with its functions not yet evaluated; the order of definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from stoker.hot.calls import inline, is_call, references
from stoker.hot.flaw import Flaw, Path, flaw, map_at, optional_map, scalar_text
from stoker.hot.scope import weigh
from stoker.hot.syntaxes import has_conditions
from stoker.hot.words import did_you_mean, quote_word
from stoker.model.errors import CircularDependencyException

#: From this version on, deletion policies may be written in lower case.
_LOWER_CASE = "2016-10-14"
_POLICIES = ("Delete", "Retain", "Snapshot")
_KEYS = frozenset(("type", "properties", "metadata", "depends_on", "deletion_policy", "update_policy", "description"))
#: Keys that were introduced together with conditions.
_LATER_KEYS = frozenset(("condition", "external_id"))


class Definition(Struct, frozen=True, dict=True):
    """A resource's definition, stored with each resource, so that a step does not need the whole template."""

    name: str
    type: str
    properties: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    depends_on: tuple[str, ...] = ()
    #: A call until ``with_settings``, like ``external_id``.
    deletion_policy: Any = "Delete"
    update_policy: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    #: The id of an existing object that the resource adopts; Stoker never changes or deletes the object.
    external_id: Any = None
    #: Set by the environment: breakpoints, and restricted actions of updates.
    hooks: tuple[str, ...] = ()
    restricted_actions: tuple[str, ...] = ()
    #: Set by a group for a member: whether to keep it unchanged, and whether others continue after its failure.
    is_frozen: bool | None = None
    may_fail: bool | None = None
    #: Unevaluated until the template's conditions are decided.
    condition: Any = None
    #: The type that the template names, if the environment maps it to ``type``.
    mapped_from: str | None = None

    @cached_property
    def requires(self) -> frozenset[str]:
        """The names of the resources that must be complete first."""
        expressions = (self.properties, self.metadata, self.update_policy)
        return frozenset(self.depends_on).union(*map(references, expressions))

    def to_json(self) -> dict[str, Any]:
        """For the database: stored with every resource, so rarely used fields without a value are omitted."""
        data = asdict(self) | {"depends_on": list(self.depends_on), "requires": sorted(self.requires)}
        return {name: value for name, value in data.items() if value is not None and value != ()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Definition:
        """Restore a definition from ``to_json``."""
        fields = dict(data)
        for name in ("depends_on", "hooks", "restricted_actions"):
            fields[name] = tuple(data.get(name, ()))
        requires = fields.pop("requires", None)
        definition = cls(**fields)
        if requires is not None:
            definition.__dict__["requires"] = frozenset(requires)  # so that a step need not search the definition
        return definition


def settings_of(definition: Definition) -> Mapping[str, Any]:
    """Return the settings of a resource that are calls, by name: their values depend on parameters."""
    values = {name: getattr(definition, name) for name in SETTINGS}
    return {name: value for name, value in values.items() if isinstance(value, Mapping)}


def with_setting(definition: Definition, name: str, value: Any, version: str) -> Definition:
    """Replace a setting that is a call by its value or another call. Raises a flaw if the value is invalid."""
    checked = _or_call(SETTINGS[name], value, version, ("resources", definition.name, name))
    return replace(definition, **{name: checked})


def define(name: str, raw: Any, version: str) -> Definition:
    """Build a definition from its map in the template. Raises a flaw if the map is invalid."""
    path: Path = ("resources", name)
    _check_name(name, path)
    data = map_at(raw, path)
    _check_keys(data, version, path)
    if data.get("external_id") is not None and data.get("depends_on"):
        raise flaw((*path, "depends_on"), "a resource with an external_id depends on nothing")
    if not isinstance(data.get("type"), str) or not data["type"]:
        raise flaw(path, 'a resource needs a "type"')
    return Definition(
        name=name,
        type=data["type"],
        properties=optional_map(data, "properties", path),
        metadata=optional_map(data, "metadata", path),
        depends_on=_depends_on(data.get("depends_on"), (*path, "depends_on")),
        deletion_policy=_or_call(_deletion_policy, data.get("deletion_policy"), version, (*path, "deletion_policy")),
        update_policy=optional_map(data, "update_policy", path),
        description=scalar_text(data.get("description"), (*path, "description")),
        external_id=_or_call(_external_id, data.get("external_id"), version, (*path, "external_id")),
        condition=data.get("condition"),
    )


def inline_files(definition: Definition, files: Mapping[str, str]) -> Definition:
    """Insert the texts of files into the definition, so that its evaluation needs no files."""
    if not files:
        return definition
    names = ("properties", "metadata", "update_policy")
    texts = {name: inline(getattr(definition, name), files) for name in names}
    weigh(texts)
    return replace(definition, **texts)


def _check_name(name: str, path: Path) -> None:
    if not 1 <= len(name) <= 255:
        raise Flaw("resources: a resource's name must have between 1 and 255 characters", path)
    if "/" in name:
        raise flaw(path, 'a resource\'s name must not contain "/"')


def _external_id(value: Any, _version: str, path: Path) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise flaw(path, "the id of something that is there is needed, in text")
    return value


def _or_call(check: Callable[[Any, str, Path], Any], value: Any, version: str, path: Path) -> Any:
    """Check a setting. A call stays as it is; it may use parameters only, because no resource exists yet."""
    if not isinstance(value, Mapping):
        return check(value, version, path)
    if len(value) != 1 or not (is_call(value, version) or "if" in value):
        raise flaw(path, "text or a function is needed, not a map")
    if named := sorted(references(value)):
        raise flaw(path, f"the function may use parameters only, not the resource {quote_word(named[0])}")
    return value


def _check_keys(data: dict[str, Any], version: str, path: Path) -> None:
    if _KEYS.issuperset(data):
        return
    for key in data:
        if key not in _KEYS and (key not in _LATER_KEYS or not has_conditions(version)):
            hint = did_you_mean(key, _KEYS)
            raise flaw((*path, key), f"Invalid keyword(s) inside a resource definition: {key}{hint}")


def _depends_on(raw: Any, path: Path) -> tuple[str, ...]:
    if raw is None:
        return ()
    names = [raw] if isinstance(raw, str) else raw
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise flaw(path, "the name of a resource is needed, or a list of names")
    return tuple(dict.fromkeys(names))


def _deletion_policy(raw: Any, version: str, path: Path) -> str:
    if raw is None:
        return "Delete"
    written = raw.capitalize() if isinstance(raw, str) and version >= _LOWER_CASE and raw.islower() else raw
    if written not in _POLICIES:
        raise flaw(path, f"Invalid deletion policy {quote_word(raw)}")
    return str(written)


#: Settings of a resource that may depend on parameters, with the functions that check their values.
SETTINGS: Mapping[str, Callable[[Any, str, Path], Any]] = {
    "deletion_policy": _deletion_policy,
    "external_id": _external_id,
}


def sort_requirements(requirements: Mapping[str, Set[str]]) -> tuple[str, ...]:
    """
    Sort names so that each follows all it requires, else as given. Raises CircularDependencyException. Does not
    recurse, because chains may be as long as a template.
    """
    sorter: TopologicalSorter[str] = TopologicalSorter()
    # Add the names first, so that the result does not depend on the order of sets, which varies between processes.
    for name in requirements:
        sorter.add(name)
    for name, required in requirements.items():
        sorter.add(name, *required)
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        cycle = _from_first(error.args[1], requirements)
    raise CircularDependencyException(f"Circular Dependency Found: [{', '.join(cycle)}]")


def _from_first(cycle: list[str], requirements: Mapping[str, Set[str]]) -> list[str]:
    """The cycle as "a requires b requires a", beginning with the name that the template defines first."""
    # The sorter lists the cycle in reverse order, with the first name repeated at the end.
    names = cycle[:0:-1]
    places = {name: place for place, name in enumerate(requirements)}
    start = min(range(len(names)), key=lambda index: places[names[index]])
    turned = names[start:] + names[:start]
    return [*turned, turned[0]]
