"""
Prepares a request's template for an operation. All errors are found here, before any resource exists.

The files of the request include the catalog entries that it names: Heat's clients do not know the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stoker import hot
from stoker.backends.provider import Constraints
from stoker.catalog.entry import REFERENCE, SCHEME
from stoker.hot import Budget, Environment, Flaws, Parameters, Template
from stoker.model.errors import Invalid, StokerError, redact_error
from stoker.model.ids import Arn
from stoker.model.secrets import redact, texts_of
from stoker.model.stack import Source, Stack
from stoker.resources.roles import NestedSpec
from stoker.stacks.engine import Engine
from stoker.stacks.templates.check import Checker
from stoker.stacks.templates.lookup import parse_once
from stoker.stacks.templates.outline import Outline

#: Heat's value for AWS::Region. Templates may contain mappings for this name.
_AWS_REGION = "ap-southeast-1"


class StackRequest(Struct, frozen=True):
    """The unparsed parts of a request. A ``template`` in text form keeps line numbers for errors."""

    template: Any = None
    files: Any = None
    environment: Any = None
    environment_files: Any = None
    parameters: Any = None


@dataclass(frozen=True, slots=True)
class Identity:
    """The stack that the pseudo parameters describe."""

    stack_id: str
    stack_name: str
    project_id: str

    @classmethod
    def of(cls, stack: Stack) -> Identity:
        """Return the identity of a stack."""
        return cls(stack.id, stack.name, stack.project_id)

    def pseudo(self) -> Mapping[str, str]:
        """Return the values of the pseudo parameters."""
        return {
            "OS::stack_id": self.stack_id,
            "OS::stack_name": self.stack_name,
            "OS::project_id": self.project_id,
            "AWS::StackId": str(Arn(self.project_id, self.stack_name, self.stack_id)),
            "AWS::StackName": self.stack_name,
            "AWS::Region": _AWS_REGION,
        }


class ResolvedStack(Struct, frozen=True, kw_only=True):
    """A checked template with its parameters, ready to be applied."""

    identity: Identity
    source: Source
    parameters: Parameters
    outline: Outline
    #: By resource name, in JSON form: with final types and the contents of files.
    definitions: Mapping[str, Mapping[str, Any]]
    event_sinks: tuple[Mapping[str, Any], ...] = ()
    #: Unusual parts of the template that are no errors.
    warnings: tuple[str, ...] = ()

    @property
    def needs(self) -> Mapping[str, Collection[str]]:
        """The names of the resources that each resource requires."""
        return {name: resource.definition.requires for name, resource in self.outline.resources.items()}

    def facts(self) -> dict[str, Any]:
        """Return the columns of a stack's row that depend on the template."""
        template, errors = self.outline.template, self.outline.output_errors
        return {
            "description": template.description,
            "version": template.version,
            "parameters": self.parameters.to_json(),
            "event_sinks": self.event_sinks,
            "outputs": {
                name: {
                    "description": output.description,
                    **({"error": errors[name]} if name in errors else {"value": output.value}),
                }
                for name, output in template.outputs.items()
            },
        }


def read(request: StackRequest, flaws: Flaws) -> tuple[Template, dict[str, str], Environment]:
    """Parse the parts of a request one by one. Errors of the template are added to ``flaws``. Raises Invalid."""
    if request.template is None:
        raise Invalid("No template specified")
    files = _files(request.files)
    template = hot.parse(request.template, files, flaws)
    return template, files, _environment(request, files, template)


def prepare(
    engine: Engine,
    request: StackRequest,
    identity: Identity,
    *,
    every_member: bool = False,
    constraints: Constraints | None = None,
) -> ResolvedStack:
    """Prepare a request to create or update a stack; see ``Checker``. Raises Invalid with place and remedy."""
    flaws = Flaws(request.template)
    template, files, environment = read(request, flaws)
    supplied = mapping(request.parameters, "parameters")
    source = Source(template=template.document, files=files, environment=environment.to_json(), supplied=supplied)
    checker = Checker(engine, files, engine.budget(), flaws, every_member=every_member, constraints=constraints)
    return _resolve(checker, template, flaws, environment, source, identity)


def prepare_change(
    engine: Engine,
    request: StackRequest,
    identity: Identity,
    old: Source,
    cleared: Iterable[str],
    constraints: Constraints | None = None,
) -> ResolvedStack:
    """Prepare a PATCH: missing parts stay, undeclared and ``cleared`` parameters are dropped."""
    files = {**old.files, **_files(request.files)}
    environment = Environment.parse(old.environment).merge(_environment(request, files))
    text = request.template if request.template is not None else old.template
    flaws = Flaws(text)
    template = hot.parse(text, files, flaws)
    kept = template.parameters.keys() - set(cleared)
    both = ({**old.supplied, **mapping(request.parameters, "parameters")}, environment.parameters)
    supplied, parameters = ({name: value for name, value in values.items() if name in kept} for values in both)
    environment = replace(environment, parameters=parameters)
    source = Source(template=template.document, files=files, environment=environment.to_json(), supplied=supplied)
    checker = Checker(engine, files, engine.budget(), flaws, constraints=constraints)
    return _resolve(checker, template, flaws, environment, source, identity)


def prepare_again(
    engine: Engine, stack: Stack, source: Source, budget: Budget, files: Mapping[str, str] | None = None
) -> ResolvedStack:
    """Prepare a stored source again. ``files`` are those of its tree, which a nested stack's source lacks."""
    template, flaws = hot.parse(source.template), Flaws()
    checker = Checker(engine, source.files if files is None else files, budget, flaws)
    return _resolve(checker, template, flaws, Environment.parse(source.environment), source, Identity.of(stack))


def prepare_inner(
    engine: Engine,
    spec: NestedSpec,
    files: Mapping[str, str],
    environment: Environment,
    identity: Identity,
    budget: Budget,
) -> ResolvedStack:
    """Prepare a nested stack, which shares the files of its tree and the budget of the stacks around it."""
    template = parse_once(spec.template) if isinstance(spec.template, str) else hot.parse(spec.template)
    supplied = {name: value for name, value in spec.parameters.items() if value is not None}
    source, flaws = Source(template=template.document, environment=environment.to_json(), supplied=supplied), Flaws()
    resolved = _resolve(Checker(engine, files, budget, flaws), template, flaws, environment, source, identity)
    if not spec.frozen_members and not spec.lenient:
        return resolved
    frozen, may_fail = frozenset(spec.frozen_members), {"may_fail": True} if spec.lenient else {}
    definitions = {
        name: {**definition, **({"is_frozen": True} if name in frozen else may_fail)}
        for name, definition in resolved.definitions.items()
    }
    return replace(resolved, definitions=definitions)


def _resolve(
    checker: Checker, template: Template, flaws: Flaws, environment: Environment, source: Source, identity: Identity
) -> ResolvedStack:
    parameters = hot.bind(template, environment, supplied=source.supplied, pseudo=identity.pseudo(), flaws=flaws)
    outline, warnings = check(checker, template, parameters, environment)
    return ResolvedStack(
        identity=identity,
        source=source,
        parameters=parameters,
        outline=outline,
        definitions={name: resource.definition.to_json() for name, resource in outline.resources.items()},
        event_sinks=tuple({"target": sink.queue, "ttl": sink.ttl} for sink in environment.event_sinks),
        warnings=warnings,
    )


def check(
    checker: Checker, template: Template, parameters: hot.Parameters, environment: Environment
) -> tuple[Outline, tuple[str, ...]]:
    """Return the outline and the warnings, with hidden values redacted in all errors. Raises a kind of Invalid."""
    hidden = [text for name in parameters.hidden for text in texts_of(parameters.values.get(name))]
    try:
        outline = checker.check(template, parameters, environment)
    except StokerError as error:
        redact_error(error, hidden)
        raise
    shown = replace(outline, output_errors=redact(outline.output_errors, hidden))
    return shown, tuple(redact(warning, hidden) for warning in checker.warnings())


def _environment(request: StackRequest, files: Mapping[str, str], template: Template | None = None) -> Environment:
    """Return the merged environment files, or the single environment if there are no files."""
    names = request.environment_files
    if not names:
        return Environment.parse(request.environment)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise Invalid("environment_files must be a list of names in files")
    merged = Environment.parse(None)
    types = {schema.name: schema.type for schema in template.parameters.values()} if template else {}
    for name in names:
        if name not in files:
            raise Invalid(f"environment_files: {name!r} is not in files")
        merged = merged.merge(Environment.parse(files[name]), types)
    return merged


def _files(files: Any) -> dict[str, str]:
    texts = mapping(files, "files")
    for name, content in texts.items():
        if not isinstance(content, str):
            raise Invalid(f"files.{name} must be text, not {type(content).__name__}")
    return texts


def mapping(value: Any, what: str) -> dict[str, Any]:
    """Return ``value`` as a dict, empty for None. Raises Invalid; ``what`` is its name in the message."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Invalid(f"{what} must be a map, not {type(value).__name__}")
    return dict(value)


#: Returns the text of the entry with this name and version, or None.
FindEntry = Callable[[str, int], str | None]


def add_entries(request: StackRequest, find: FindEntry) -> StackRequest:
    """
    Return the request with each catalog entry that it names among its files, which take precedence. Unknown entries are
    left to the checks of the template.
    """
    texts = [request.template, request.environment, request.files]
    entries = {}
    for reference, name, version in _references(texts):
        if reference not in entries and not (isinstance(request.files, Mapping) and reference in request.files):
            entries[reference] = find(name, version)
    present = {reference: text for reference, text in entries.items() if text is not None}
    return replace(request, files={**present, **(request.files or {})}) if present else request


def _references(value: Any) -> Iterator[tuple[str, str, int]]:
    """Yield the references in all texts of a value, which may be nested, with their names and versions."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if SCHEME in item:
                for match in REFERENCE.finditer(item):
                    yield match[0], match[1], int(match[2])
        elif isinstance(item, Mapping):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list | tuple):
            pending.extend(item)
