"""Parameters: their schemas in a template, groups of them, which lay out a form, and the values bound to them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from stoker.hot import parameter_values
from stoker.hot.constraints import AllowedPattern, Constraint, Custom, parse_constraint
from stoker.hot.flaw import Flaw, Flaws, Path, flaw, list_at, map_at, scalar_text
from stoker.hot.scope import UNKNOWN
from stoker.hot.syntaxes import RESERVED, pseudo_parameters
from stoker.hot.words import clip, did_you_mean
from stoker.model.errors import (
    ImmutableParameterModified,
    InvalidSchemaError,
    UnknownUserParameter,
    UserParameterMissing,
)
from stoker.model.secrets import REDACTED

if TYPE_CHECKING:
    from stoker.hot.environment import Environment
    from stoker.hot.template import Template

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


class Parameters(Struct, frozen=True):
    """The values of all parameters of a stack, including pseudo parameters, as stored with the stack."""

    values: Mapping[str, Any]
    types: Mapping[str, str]
    hidden: frozenset[str] = frozenset()
    immutable: frozenset[str] = frozenset()

    def __getitem__(self, name: str) -> Any:
        """The result of ``get_param``. Raises UserParameterMissing."""
        try:
            return self.values[name]
        except KeyError:
            raise UserParameterMissing(f"The Parameter ({clip(name)}) was not provided.") from None

    def for_display(self) -> dict[str, str]:
        """All values as text, as in Heat's API; hidden values are redacted."""
        return {
            name: REDACTED if name in self.hidden else parameter_values.format_value(self.types[name], value)
            for name, value in self.values.items()
        }

    def check_update(self, new: Parameters) -> None:
        """Raise ImmutableParameterModified if ``new`` changes a parameter that it declares immutable."""
        changed = [
            name for name in sorted(new.immutable) if name in self.values and self.values[name] != new.values[name]
        ]
        if changed:
            raise ImmutableParameterModified(
                f"The following parameters are immutable and may not be updated: {', '.join(changed)}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the parameters in the form that the database stores."""
        return {**asdict(self), "hidden": sorted(self.hidden), "immutable": sorted(self.immutable)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Parameters:
        """Restore the parameters from ``to_json``."""
        return cls(data["values"], data["types"], frozenset(data["hidden"]), frozenset(data["immutable"]))


def bind(
    template: Template,
    environment: Environment,
    *,
    supplied: Mapping[str, Any] | None = None,
    pseudo: Mapping[str, Any] | None = None,
    flaws: Flaws | None = None,
    may_miss: bool = False,
) -> Parameters:
    """
    Choose for each parameter the first value that is not null of: ``supplied``, the environment's ``parameters`` and
    ``parameter_defaults``, the template's default; and of ``pseudo`` (None: UNKNOWN) those of its version.

    With ``flaws``, problems are added there, their values are UNKNOWN, and the caller raises the error. With
    ``may_miss``, missing values are UNKNOWN.
    """
    collector = Flaws() if flaws is None else flaws
    values = {**environment.parameters, **(supplied or {})}
    _check_names(values, template, collector)
    own = _pseudo_values(template.version, pseudo)
    schemas = template.parameters.values()
    bound = {
        schema.name: _value(
            schema, values.get(schema.name), environment.parameter_defaults.get(schema.name), collector, may_miss
        )
        for schema in schemas
    }
    if flaws is None:
        collector.raise_any()
    return Parameters(
        values={**own, **bound},
        types=dict.fromkeys(own, "string") | {schema.name: schema.type for schema in schemas},
        hidden=frozenset(schema.name for schema in schemas if schema.hidden),
        immutable=frozenset(schema.name for schema in schemas if schema.immutable),
    )


def _pseudo_values(version: str, supplied: Mapping[str, Any] | None) -> dict[str, Any]:
    names = pseudo_parameters(version)
    if supplied is None:
        return dict.fromkeys(names, UNKNOWN)
    return {name: value for name, value in supplied.items() if name in names}


def _check_names(supplied: Iterable[str], template: Template, flaws: Flaws) -> None:
    refused = {flaw.path[1] for flaw in flaws if flaw.path[:1] == ("parameters",) and len(flaw.path) > 1}
    for name in supplied:
        if name not in template.parameters and name not in refused:
            hint = did_you_mean(name, template.parameters)
            sentence = f"The Parameter ({clip(name)}) was not defined in template{hint or '.'}"
            flaws.add(Flaw(sentence, (), UnknownUserParameter))


def _value(schema: ParameterSchema, value: Any, environment_default: Any, flaws: Flaws, may_miss: bool) -> Any:
    chosen = schema.choose(value, environment_default)
    path = ("parameters", schema.name)
    if chosen is None:
        if not may_miss:
            flaws.add(Flaw(f"The Parameter ({schema.name}) was not provided.", path, UserParameterMissing))
        return UNKNOWN
    if chosen is UNKNOWN:
        return UNKNOWN
    try:
        return schema.accept(chosen)
    except ValueError as error:
        flaws.add(Flaw(f"Parameter '{schema.name}' is invalid: {clip(str(error))}", path))
        return UNKNOWN
