"""From what a user handed in to what can be applied. Everything that can be wrong is found here, before anything is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker import hot
from stoker.hot import Environment, Parameters, Template
from stoker.model.arn import Arn
from stoker.model.errors import Invalid
from stoker.model.stack import Source
from stoker.resources.services import Inner
from stoker.stacks.check import Checker, parse_once
from stoker.stacks.engine import Engine
from stoker.stacks.foresight import Deploys

#: What Heat says where a template asks for its region; mappings by region are written for such names.
_AWS_REGION = "ap-southeast-1"


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
    event_sinks: tuple[Mapping[str, Any], ...] = ()
    #: What it deploys to servers that are known, and whether it may come to stand for one of them.
    deploys: tuple[Deploys, ...] = ()
    stands_for: bool = False

    def facts(self) -> dict[str, Any]:
        """What a stack's row says of its template."""
        return {
            "description": self.template.description,
            "version": self.template.version,
            "parameters": self.parameters.to_json(),
            "event_sinks": self.event_sinks,
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
            "AWS::StackId": str(Arn(self.project_id, self.stack_name, self.stack_id)),
            "AWS::StackName": self.stack_name,
            "AWS::Region": _AWS_REGION,
        }


def read(handed: Handed) -> tuple[Template, dict[str, str], Environment]:
    """The request's words, read; whether they fit together is seen later. Raises a kind of Invalid."""
    if handed.template is None:
        raise Invalid("No template specified")
    files = _files(handed.files)
    template = hot.parse(handed.template, files)
    return template, files, _environment(handed, files, template)


def prepare(engine: Engine, handed: Handed, identity: Identity) -> Prepared:
    """Raises a kind of Invalid that names the place and the remedy."""
    template, files, environment = read(handed)
    supplied = mapping(handed.parameters, "parameters")
    source = Source(template=template.document, files=files, environment=environment.to_json(), supplied=supplied)
    return _prepared(engine, template, handed.template, environment, source, identity, files)


def prepare_change(engine: Engine, handed: Handed, identity: Identity, old: Source, cleared: Iterable[str]) -> Prepared:
    """PATCH: what is not handed in stays as it was; parameters the new template does not know are dropped."""
    files = {**old.files, **_files(handed.files)}
    environment = Environment.parse(old.environment).merged(_environment(handed, files))
    text = handed.template if handed.template is not None else old.template
    template = hot.parse(text, files)
    supplied = {**old.supplied, **mapping(handed.parameters, "parameters")}
    dropped = set(cleared)
    kept = {name: value for name, value in supplied.items() if name in template.parameters and name not in dropped}
    parameters = {
        name: value
        for name, value in environment.parameters.items()
        if name in template.parameters and name not in dropped
    }
    environment = replace(environment, parameters=parameters)
    source = Source(template=template.document, files=files, environment=environment.to_json(), supplied=kept)
    return _prepared(engine, template, text, environment, source, identity, files)


def prepare_again(engine: Engine, source: Source, identity: Identity, files: Mapping[str, str]) -> Prepared:
    """A source that was prepared before; ``files`` are those of its tree."""
    template = hot.parse(source.template)
    environment = Environment.parse(source.environment)
    return _prepared(engine, template, None, environment, source, identity, files)


def prepare_inner(
    engine: Engine, inner: Inner, files: Mapping[str, str], environment: Environment, identity: Identity
) -> Prepared:
    """A nested stack, whose files are those of its tree."""
    template = parse_once(inner.template) if isinstance(inner.template, str) else hot.parse(inner.template)
    supplied = {name: value for name, value in inner.parameters.items() if value is not None}
    source = Source(template=template.document, environment=environment.to_json(), supplied=supplied)
    prepared = _prepared(engine, template, None, environment, source, identity, files)
    if not inner.held and not inner.lenient:
        return prepared
    held, may_fail = frozenset(inner.held), {"may_fail": True} if inner.lenient else {}
    said = {
        name: {**each, **({"held": True} if name in held else may_fail)} for name, each in prepared.definitions.items()
    }
    return replace(prepared, definitions=said)


def _prepared(
    engine: Engine,
    template: Template,
    text: Any,
    environment: Environment,
    source: Source,
    identity: Identity,
    files: Mapping[str, str],
) -> Prepared:
    parameters = hot.bind(template, environment, supplied=source.supplied, pseudo=identity.pseudo())
    template = hot.decide(template, parameters, files)
    checker = Checker(engine, files)
    definitions = checker.check(template, parameters, environment, text)
    needs = {name: each.requires for name, each in template.resources.items()}
    sinks = tuple({"target": sink.queue, "ttl": sink.ttl} for sink in environment.event_sinks)
    return Prepared(source, template, parameters, definitions, needs, sinks, tuple(checker.deploys), checker.stands_for)


def _environment(handed: Handed, files: Mapping[str, str], template: Template | None = None) -> Environment:
    """The environment files in their order, or the one environment when there are none."""
    names = handed.environment_files
    if not names:
        return Environment.parse(handed.environment)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid("environment_files must be a list of names in files")
    merged = Environment.parse(None)
    types = {each.name: each.type for each in template.parameters.values()} if template else {}
    for name in names:
        if name not in files:
            raise Invalid(f"environment_files: {name!r} is not in files")
        merged = merged.merged(Environment.parse(files[name]), types)
    return merged


def _files(files: Any) -> dict[str, str]:
    found = mapping(files, "files")
    for name, content in found.items():
        if not isinstance(content, str):
            raise Invalid(f"files.{name} must be text, not {type(content).__name__}")
    return found


def mapping(value: Any, what: str) -> dict[str, Any]:
    """Nothing is an empty one. Raises Invalid."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"{what} must be a map, not {type(value).__name__}")
    return dict(value)
