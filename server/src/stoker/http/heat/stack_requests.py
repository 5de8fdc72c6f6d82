"""The bodies of requests about stacks: their types, their limits, and the preparation for ``stacks``."""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, NoReturn, Self
from uuid import uuid4

import msgspec
from msgspec import UNSET, Meta

from stoker.backends.provider import Constraints
from stoker.catalog import shipped
from stoker.hot.text import MAX_ENVIRONMENT, MAX_TEMPLATE
from stoker.http.contracts import BODY, NO_NUL, Absent, Answer, Body, Id, Whole, convert, described
from stoker.http.heat import stack_lookup
from stoker.http.request import RequestContext
from stoker.json_values import Part, decode, decode_texts, json_size, split
from stoker.model.artifact import ArtifactKind
from stoker.model.errors import Invalid, NotSupported, RequestLimitExceeded
from stoker.model.stack import Action, Source, Stack, Status
from stoker.stacks.operations import Options
from stoker.stacks.templates.prepare import Identity, ResolvedStack, StackRequest, add_entries, prepare, prepare_change
from stoker.store import artifacts, stacks

#: Maximum bytes of the JSON text of a body's members, except ``files``. Other members have the limit of an environment.
_MEMBER_LIMITS = {"template": MAX_TEMPLATE, "environment": MAX_ENVIRONMENT, "adopt_stack_data": 8 * 1024 * 1024}
_NAME = "[a-zA-Z][a-zA-Z0-9_.-]{0,254}"
_Tags = Annotated[str, Meta(max_length=4096, pattern=NO_NUL, description="Tags, separated by commas")]
_LONGEST_TAG = 80


TEMPLATE_EXAMPLE = {
    "heat_template_version": "2018-08-31",
    "parameters": {"length": {"type": "number", "default": 8, "constraints": [{"range": {"min": 1, "max": 64}}]}},
    "resources": {
        "config": {
            "type": "OS::Heat::SoftwareConfig",
            "properties": {"group": "script", "config": "true", "outputs": [{"name": "result"}]},
        },
        "secret": {"type": "OS::Heat::RandomString", "properties": {"length": {"get_param": "length"}}},
        "both": {"type": "OS::Heat::Value", "properties": {"value": [{"get_resource": "config"}, "and more"]}},
    },
    "outputs": {"secret": {"value": {"get_attr": ["secret", "value"]}}},
}


Template = Annotated[Any, described(dict[str, Any] | str, "A template as data or as YAML text.")]
Environment = Annotated[Any, described(dict[str, Any] | str, "An environment as data or as YAML text.")]
EnvironmentFiles = Annotated[Any, described(list[str], "The names of those files that are environments.")]
Files = Annotated[Any, described(dict[str, str], "Texts by the names that templates use.")]
ParameterValues = Annotated[Any, described(dict[str, Any], "Values of a template's parameters by name.")]
_Imported = Annotated[Any, described(list[dict[str, Any]])]


class ExportedResource(Answer):
    name: Id
    resource_id: str | None
    type: str
    action: Action
    status: Status
    metadata: dict[str, Any]
    resource_data: dict[str, Any]
    resources: (
        Annotated[
            dict[str, ExportedResource],
            Meta(description="The resources of the nested stack that the resource represents"),
        ]
        | Absent
    ) = UNSET


class ExportedStack(Answer):
    """A stack with everything that is required to adopt its objects."""

    name: Id
    id: Id
    action: Action
    status: Status
    template: dict[str, Any]
    environment: dict[str, Any]
    files: dict[str, str]
    project_id: str
    stack_user_project_id: str
    tags: list[str]
    resources: dict[str, ExportedResource]
    #: Objects of another Heat that Stoker creates with their ids before the resources adopt them.
    software_configs: _Imported | Absent = UNSET
    software_deployments: _Imported | Absent = UNSET
    servers: _Imported | Absent = UNSET


class TemplateBody(Body):
    """A template with its files, environment and parameters."""

    template: Template | None = None
    template_url: Annotated[Any, Meta(description="Not supported: send the template itself")] = None
    files: Files | None = None
    environment: Environment | None = None
    environment_files: EnvironmentFiles | None = None
    parameters: ParameterValues | None = None

    @classmethod
    def decode(cls, raw: bytes) -> Self:
        """
        Decode a body. The size of each member is checked before the member is decoded.

        A template in JSON has the same limit as a template in text. Raises Invalid or RequestLimitExceeded.
        """
        members = split(raw, _parts(cls), BODY)
        body: Self = convert({name: _decode_member(name, part) for name, part in members.items()}, cls, BODY)
        return body

    def stack_request(self, request: RequestContext) -> StackRequest:
        """
        Return the request for ``stacks``, with the catalog entries that it names.

        Raises NotSupported for ``template_url``.
        """
        if self.template is None and self.template_url is not None:
            raise NotSupported("template_url is not supported: send the template itself")
        stack_request = StackRequest(
            template=self.template,
            files=self.files,
            environment=self.environment,
            environment_files=self.environment_files,
            parameters=self.parameters,
        )
        return _with_entries(request, stack_request)


class ValidationBody(TemplateBody, kw_only=True):
    template: Template


class StackBody(TemplateBody):
    timeout_mins: Annotated[Whole | None, Meta(description="0: the default of the site")] = None
    disable_rollback: bool | None = None
    tags: _Tags | None = None

    def options(self) -> Options:
        """Return the options of the stack. Raises Invalid."""
        tags = None if self.tags is None else _split_tags(self.tags)
        return Options(timeout_mins=self.timeout_mins or None, disable_rollback=self.disable_rollback, tags=tags)


_Plan = Annotated[str, Meta(description="The digest of a preview: an update that would do anything else is refused")]


class StackReplacement(StackBody, kw_only=True):
    template: Template
    plan: _Plan | None = None


class StackPatch(StackBody):
    clear_parameters: list[str] | None = None
    plan: _Plan | None = None


_StackName = Annotated[Any, described(Annotated[str, Meta(pattern=f"^{_NAME}$")])]
_AdoptionData = Annotated[Any, described(ExportedStack | str, "An export, as data or as JSON text.")]


class PreviewBody(StackBody, kw_only=True):
    stack_name: _StackName
    template: Template


class NewStack(StackBody, kw_only=True):
    """A stack to create or, with ``adopt_stack_data``, to adopt."""

    stack_name: _StackName
    adopt_stack_data: _AdoptionData | None = None

    def take_adoption_data(self) -> dict[str, Any] | None:
        """
        Return the data of a stack to adopt; None if the body has none.

        The template, environment and files of the data replace missing members. Raises Invalid or
        RequestLimitExceeded.
        """
        data: Any = self.adopt_stack_data
        if data is None:
            return None
        if isinstance(data, str):
            data = decode(data.encode(), "adopt_stack_data")
        if not isinstance(data, dict):
            raise Invalid("adopt_stack_data must be a map")
        if isinstance(data.get("template"), dict) and (size := json_size(data["template"])) > MAX_TEMPLATE:
            _refuse_size("template", size, MAX_TEMPLATE)
        for member in ("template", "environment", "files"):
            if getattr(self, member) is None:
                setattr(self, member, data.get(member))
        if self.tags is None and isinstance(data.get("tags"), list):
            self.tags = convert(",".join(map(str, data["tags"])), _Tags, "tags")
        return data


@cache
def _parts(kind: type[msgspec.Struct]) -> type[msgspec.Struct]:
    """Return a type with the members of ``kind`` as JSON text."""
    return msgspec.defstruct("Parts", [(name, Part, UNSET) for name in kind.__struct_fields__])


def _decode_member(name: str, raw: bytes) -> Any:
    if name == "files":
        return decode_texts(raw, name)
    limit = _MEMBER_LIMITS.get(name, MAX_ENVIRONMENT)
    # JSON may need six bytes for a character of a string. The parser of the text checks its size again.
    if len(raw) > (6 * limit + 2 if raw.startswith(b'"') else limit):
        _refuse_size(name, len(raw), limit)
    return decode(raw, BODY)


def _refuse_size(part: str, size: int, most: int) -> NoReturn:
    raise RequestLimitExceeded(
        f"Request limit exceeded: {part.capitalize()} size ({size} bytes) exceeds maximum allowed size ({most} bytes)."
    )


def _split_tags(text: str) -> tuple[str, ...]:
    tags = tuple(tag.strip() for tag in text.split(",") if tag.strip())
    for tag in tags:
        if len(tag) > _LONGEST_TAG:
            raise Invalid(f"tags must have at most {_LONGEST_TAG} characters each: the tag {tag!r:.100} is longer")
    return tags


def name(value: Any) -> str:
    """Return the name of a stack. Raises Invalid."""
    if value is None:
        raise Invalid("No stack name specified")
    if not isinstance(value, str) or not re.fullmatch(_NAME, value):
        raise Invalid(
            f"Invalid stack name {value!r} must contain only alphanumeric or '_-.' characters, "
            "must start with alpha and must be 255 characters or less."
        )
    return value


def new(request: RequestContext, body: StackBody, stack_name: str) -> ResolvedStack:
    """Prepare a new stack. Raises Invalid."""
    return _prepare(request, body, Identity(str(uuid4()), stack_name, request.project))


def for_replacement(request: RequestContext, body: StackReplacement) -> tuple[ResolvedStack, Options]:
    """Prepare a PUT, which replaces the whole stack: omitted members return to their defaults."""
    if body.template is None:
        raise Invalid("No template specified")
    stack, _ = find_stack(request)
    if body.tags is None:
        body.tags = ""
    return _prepare(request, body, Identity.of(stack)), body.options()


def for_patch(request: RequestContext, body: StackPatch) -> tuple[ResolvedStack, Options]:
    """Prepare a PATCH, which keeps omitted members."""
    stack, source = find_stack(request)
    cleared = body.clear_parameters or ()
    changes, constraints = body.stack_request(request), open_constraints(request)
    resolved = prepare_change(request.app.engine, changes, Identity.of(stack), source, cleared, constraints)
    return resolved, body.options()


def find_stack(request: RequestContext) -> tuple[Stack, Source]:
    """Return the stack of the path and its template. Raises EntityNotFound, or NotSupported for a nested stack."""
    with request.read() as tx:
        stack = stack_lookup.root_stack(tx, request)
        return stack, stacks.source(tx, stack.id)


def _with_entries(request: RequestContext, stack_request: StackRequest) -> StackRequest:
    def find(name: str, version: int) -> str | None:
        text = shipped.find_entry(name, version)
        if text is not None:
            return text
        with request.read() as tx:
            artifact = artifacts.find(tx, ArtifactKind.ENTRY, request.project, name, version)
            return None if artifact is None else artifacts.content(tx, artifact.id).decode()

    return add_entries(stack_request, find)


def _prepare(request: RequestContext, body: StackBody, identity: Identity) -> ResolvedStack:
    constraints = open_constraints(request)
    return prepare(request.app.engine, body.stack_request(request), identity, constraints=constraints)


def open_constraints(request: RequestContext) -> Constraints | None:
    """
    Return the checks of one request; None without a provider. Must not be used in a transaction.

    Without a login of the site, values are looked up as the user of the request.
    """
    open_checks = request.app.provider.open_constraints
    return open_checks(request.token, request.project) if open_checks is not None else None
