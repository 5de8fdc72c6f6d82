"""The schema of one parameter, and the groups of parameters, the layout of a form."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot import parameter_values
from stoker.hot.constraints import AllowedPattern, Constraint, Custom, parse_constraint
from stoker.hot.flaw import Flaw, Path, flaw, list_at, map_at, scalar_text
from stoker.hot.syntaxes import RESERVED
from stoker.model.errors import InvalidSchemaError

_KEYS = frozenset(("type", "label", "description", "default", "hidden", "constraints", "immutable", "tags", "schema"))
_TAGS_SINCE = "2018-03-02"


@dataclass(frozen=True)
class ParameterSchema:
    """A parameter as a template defines it."""

    name: str
    type: str
    label: str = ""
    description: str = ""
    #: Converted to the parameter's type. None: there is no default, so a value is required.
    default: Any = None
    #: The default as in the template.
    written_default: Any = None
    hidden: bool = False
    immutable: bool = False
    tags: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()

    def choose(self, value: Any, environment_default: Any) -> Any:
        """The first that is not null: the value, the environment's ``parameter_defaults``, the template's default."""
        chosen = environment_default if value is None else value
        return self.default if chosen is None else chosen

    def accept(self, value: Any) -> Any:
        """Convert ``value`` to the type of this parameter. Raises ValueError with a message for the user."""
        try:
            converted = parameter_values.convert(self.type, value)
        except ValueError:
            if self.hidden:
                raise ValueError(f"the value is no {self.type}") from None
            raise
        problem = self._problem(converted, self.constraints)
        if problem:
            raise ValueError(problem)
        return converted

    def check_default(self) -> str | None:
        """The problem of the default, or None. Custom constraints, maybe of another cloud, are not checked."""
        return self._problem(self.default, [item for item in self.constraints if not isinstance(item, Custom)])

    def custom_problem(self, value: Any, find_problem: Callable[[str, str], str | None]) -> str | None:
        """Return the problem that ``find_problem(constraint, value)`` finds by custom constraints, or None."""
        for constraint in self.constraints:
            if isinstance(constraint, Custom):
                for item in value if isinstance(value, list) else [value]:
                    if problem := find_problem(constraint.name, str(item)):
                        return constraint.explain(problem, hidden=self.hidden)
        return None

    @property
    def pattern_size(self) -> int:
        """Instructions of all its regular expressions, which must be compiled to check a value."""
        return sum(constraint.size for constraint in self.constraints if isinstance(constraint, AllowedPattern))

    def _problem(self, value: Any, constraints: Iterable[Constraint]) -> str | None:
        problems = (item.explain(item.problem(value), hidden=self.hidden) for item in constraints)
        return next(filter(None, problems), None)


def parse_schema(name: str, raw: Any, version: str) -> ParameterSchema:
    """Build a schema from its map in the template. Raises a flaw."""
    path: Path = ("parameters", name)
    data = _checked_map(name, raw, version, path)
    type_name = data.get("type")
    if type_name is None:
        raise Flaw(f"Missing parameter type for parameter: {name}", path, InvalidSchemaError)
    if not isinstance(type_name, str) or type_name not in parameter_values.TYPES:
        raise flaw((*path, "type"), f"Invalid type ({type_name})", InvalidSchemaError)
    schema = ParameterSchema(
        name=name,
        type=type_name,
        label=scalar_text(data.get("label"), (*path, "label")),
        description=scalar_text(data.get("description"), (*path, "description")),
        default=_default(data.get("default"), type_name, (*path, "default")),
        written_default=data.get("default"),
        hidden=_flag(data.get("hidden"), (*path, "hidden")),
        immutable=_flag(data.get("immutable"), (*path, "immutable")),
        tags=_tags(data.get("tags"), (*path, "tags")),
        constraints=_constraints(data.get("constraints"), type_name, version, (*path, "constraints")),
    )
    problem = None if schema.default is None else schema.check_default()
    if problem:
        raise flaw((*path, "default"), f"Invalid default ({problem})", InvalidSchemaError)
    return schema


def _checked_map(name: str, raw: Any, version: str, path: Path) -> dict[str, Any]:
    if name in RESERVED or not 1 <= len(name) <= 255:
        raise flaw(path, "a parameter cannot have this name", InvalidSchemaError)
    data = map_at(raw, path)
    for key in data:
        if key not in _KEYS or (key == "tags" and version < _TAGS_SINCE):
            raise flaw((*path, key), f"Invalid key '{key}' for parameter ({name})", InvalidSchemaError)
    return data


def _default(raw: Any, type_name: str, path: Path) -> Any:
    try:
        return None if raw is None else parameter_values.convert(type_name, raw)
    except ValueError as error:
        raise flaw(path, f"Invalid default ({error})", InvalidSchemaError) from None


def _flag(raw: Any, path: Path) -> bool:
    try:
        return raw is not None and parameter_values.boolean(raw)
    except ValueError as error:
        raise flaw(path, str(error), InvalidSchemaError) from None


def _tags(raw: Any, path: Path) -> tuple[str, ...]:
    tags = [] if raw is None else list_at(raw, path)
    return tuple(scalar_text(tag, (*path, index)) for index, tag in enumerate(tags))


def _constraints(raw: Any, type_name: str, version: str, path: Path) -> tuple[Constraint, ...]:
    entries = [] if raw is None else list_at(raw, path)
    return tuple(parse_constraint(entry, type_name, version, (*path, index)) for index, entry in enumerate(entries))


_GROUP_KEYS = ("label", "description", "parameters")


def parse_groups(raw: Any, parameters: Collection[str]) -> tuple[Mapping[str, Any], ...]:
    """The groups of a template; each parameter belongs to at most one. Raises a flaw."""
    path: Path = ("parameter_groups",)
    seen: set[str] = set()
    groups = [] if raw is None else list_at(raw, path)
    return tuple(_group(group, (*path, index), parameters, seen) for index, group in enumerate(groups))


def _group(raw: Any, path: Path, parameters: Collection[str], seen: set[str]) -> Mapping[str, Any]:
    data = map_at(raw, path)
    for key in data:
        if key not in _GROUP_KEYS:
            raise flaw((*path, key), f"Invalid key '{key}' for a parameter group")
    if "parameters" not in data:
        raise flaw(path, 'a parameter group needs a list of "parameters"')
    for key in ("label", "description"):
        scalar_text(data.get(key), (*path, key))
    for index, name in enumerate(list_at(data["parameters"], (*path, "parameters"))):
        place = (*path, "parameters", index)
        if not isinstance(name, str) or name not in parameters:
            raise flaw(place, f"The grouped parameter {name} does not reference a valid parameter.")
        if name in seen:
            raise flaw(place, f"The {name} parameter must be assigned to one parameter group only.")
        seen.add(name)
    return data
