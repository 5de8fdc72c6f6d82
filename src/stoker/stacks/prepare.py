"""From what a user handed in to what can be applied. Everything that can be wrong is found here, before anything is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker import hot
from stoker.hot import Definition, Environment, Parameters, Template
from stoker.model.errors import Invalid, RequestLimitExceeded, StackValidationFailed, StokerError
from stoker.model.stack import Source
from stoker.resources import properties as schemas
from stoker.resources.base import ResourceType
from stoker.resources.properties import PropertyError
from stoker.stacks.engine import Engine
from stoker.stacks.scope import StaticScope


@dataclass(frozen=True, slots=True)
class Handed:
    """A request's own words. ``template`` as text keeps line numbers for errors."""

    template: Any = None
    files: Any = None
    environment: Any = None
    environment_files: Any = None
    parameters: Any = None


@dataclass(frozen=True, slots=True)
class Prepared:
    source: Source
    template: Template
    parameters: Parameters
    #: By resource name, in JSON form: final types, files in place.
    definitions: Mapping[str, Mapping[str, Any]]
    needs: Mapping[str, Collection[str]]

    def facts(self) -> dict[str, Any]:
        """What a stack's row says of its template."""
        return {
            "description": self.template.description,
            "version": self.template.version,
            "parameters": self.parameters.to_json(),
            "outputs": {
                name: {"description": output.description, "value": output.value}
                for name, output in self.template.outputs.items()
            },
        }


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose template it is: what the pseudo parameters say."""

    stack_id: str
    stack_name: str
    project_id: str

    def pseudo(self) -> Mapping[str, str]:
        return {
            "OS::stack_id": self.stack_id,
            "OS::stack_name": self.stack_name,
            "OS::project_id": self.project_id,
        }


def prepare(engine: Engine, handed: Handed, identity: Identity) -> Prepared:
    """Raises a kind of Invalid that names the place and the remedy."""
    if handed.template is None:
        raise Invalid("No template specified")
    files = _files(handed.files)
    environment = _environment(handed, files)
    template = hot.parse(handed.template, files)
    supplied = _map(handed.parameters, "parameters")
    source = Source(template=template.document, files=files, environment=environment.to_json(), supplied=supplied)
    return _prepared(engine, template, handed.template, environment, source, identity)


def prepare_change(engine: Engine, handed: Handed, identity: Identity, old: Source, cleared: Iterable[str]) -> Prepared:
    """PATCH: what is not handed in stays as it was; parameters the new template does not know are dropped."""
    files = {**old.files, **_files(handed.files)}
    environment = Environment.parse(old.environment).merged(_environment(handed, files))
    text = handed.template if handed.template is not None else old.template
    template = hot.parse(text, files)
    supplied = {**old.supplied, **_map(handed.parameters, "parameters")}
    dropped = set(cleared)
    kept = {name: value for name, value in supplied.items() if name in template.parameters and name not in dropped}
    parameters = {
        name: value
        for name, value in environment.parameters.items()
        if name in template.parameters and name not in dropped
    }
    environment = replace(environment, parameters=parameters)
    source = Source(template=template.document, files=files, environment=environment.to_json(), supplied=kept)
    return _prepared(engine, template, text, environment, source, identity)


def prepare_again(engine: Engine, source: Source, identity: Identity) -> Prepared:
    """A source that was prepared before."""
    template = hot.parse(source.template, source.files)
    return _prepared(engine, template, None, Environment.parse(source.environment), source, identity)


def _prepared(
    engine: Engine, template: Template, text: Any, environment: Environment, source: Source, identity: Identity
) -> Prepared:
    limit = engine.limits.resources_per_stack
    if 0 <= limit < len(template.resources):
        raise RequestLimitExceeded(f"a stack may have {limit} resources, this template has {len(template.resources)}")
    parameters = hot.bind(template, environment, supplied=source.supplied, pseudo=identity.pseudo())
    types = {name: _type(engine, environment, each, text) for name, each in template.resources.items()}
    scope = StaticScope(template.version, parameters, source.files, types)
    definitions = {}
    for name, each in template.resources.items():
        definition = hot.inline_files(replace(each, type=types[name].name), source.files)
        _check(types[name], definition, scope, text)
        definitions[name] = definition.to_json()
    for name, output in template.outputs.items():
        _located(text, ("outputs", name, "value"), lambda value=output.value: hot.evaluate(value, scope))
    needs = {name: each.requires for name, each in template.resources.items()}
    return Prepared(source, template, parameters, definitions, needs)


def _type(engine: Engine, environment: Environment, definition: Definition, text: Any) -> ResourceType:
    name = environment.registry.resolve(definition.type, definition.name)
    found = engine.types.get(name) if name is not None else None
    if found is None:
        at = hot.at(text, ("resources", definition.name, "type"))
        shown = definition.type if name in (None, definition.type) else f"{definition.type} (mapped to {name})"
        raise StackValidationFailed(
            f"resources.{definition.name}.type: The Resource Type ({shown}) could not be found.{at}"
        )
    return found


def _check(kind: ResourceType, definition: Definition, scope: StaticScope, text: Any) -> None:
    place = ("resources", definition.name)
    values = _located(text, (*place, "properties"), lambda: hot.evaluate(definition.properties, scope))
    _located(text, (*place, "metadata"), lambda: hot.evaluate(definition.metadata, scope))
    if kind.properties is None:
        return
    try:
        checked = schemas.check(kind.properties, values)
    except PropertyError as error:
        path = (*place, "properties", *error.path)
        dotted = ".".join(map(str, path))
        raise StackValidationFailed(f"Property error: {dotted}: {error.problem}{hot.at(text, path)}") from None
    _located(text, (*place, "properties"), lambda: kind.validate(checked))


def _located(text: Any, path: tuple[str | int, ...], do: Any) -> Any:
    try:
        return do()
    except StokerError as error:
        dotted = ".".join(map(str, path))
        if dotted.rsplit(".", 1)[0] in error.message:
            raise
        raise type(error)(f"{dotted}: {error.message}{hot.at(text, path)}") from None


def _environment(handed: Handed, files: Mapping[str, str]) -> Environment:
    """The environment files in their order, or the one environment when there are none."""
    names = handed.environment_files
    if not names:
        return Environment.parse(handed.environment)
    if not isinstance(names, list):
        raise Invalid("environment_files must be a list of names in files")
    merged = Environment.parse(None)
    for name in names:
        if name not in files:
            raise Invalid(f"environment_files: {name!r} is not in files")
        merged = merged.merged(Environment.parse(files[name]))
    return merged


def _files(files: Any) -> dict[str, str]:
    found = _map(files, "files")
    for name, content in found.items():
        if not isinstance(content, str):
            raise Invalid(f"files.{name} must be text, not {type(content).__name__}")
    return found


def _map(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"{what} must be a map, not {type(value).__name__}")
    return dict(value)
