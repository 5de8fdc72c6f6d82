"""/v1/{project}/software_configs"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET
from msgspec.structs import asdict

from stoker.deployments.configs import delete_config, new_config
from stoker.deployments.derive import redact_config
from stoker.deployments.schema import Type
from stoker.http import pages
from stoker.http.contracts import Absent, Answer, Body, Id, Name, Query, RequiredName, Time, Whole, described, operation
from stoker.http.request import RequestContext, Response
from stoker.model.errors import Forbidden
from stoker.store import configs, rows
from stoker.store.tx import Tx, check_limit


class NewConfigInput(Body, forbid_unknown_fields=True):
    name: RequiredName
    type: Type | None = None
    description: str | None = None
    default: Any = None
    replace_on_change: bool | None = None
    secret: bool | None = None
    value: Any = None


class NewConfigOutput(Body, forbid_unknown_fields=True):
    name: RequiredName
    type: Type | None = None
    description: str | None = None
    error_output: bool | None = None


_Inputs = Annotated[Any, described(list[NewConfigInput])]
_Outputs = Annotated[Any, described(list[NewConfigOutput])]


class NewConfig(Body):
    """A config to create. ``group`` names the hook that runs it, and ``config`` is what the hook runs, mostly text."""

    name: Name | None = None
    group: Name | None = None
    config: Any = None
    inputs: _Inputs | None = None
    outputs: _Outputs | None = None
    options: dict[str, Any] | None = None


class ConfigInput(Answer):
    name: Id
    type: Type
    description: str | Absent = UNSET
    default: Any = UNSET
    replace_on_change: bool | Absent = UNSET
    secret: bool | Absent = UNSET
    value: Any = UNSET


class ConfigOutput(Answer):
    name: Id
    type: Type
    error_output: bool
    description: str | Absent = UNSET


class ConfigSummary(Answer):
    id: Id
    name: str | None
    group: str | None
    creation_time: Time


class SoftwareConfig(ConfigSummary):
    config: Any
    inputs: list[ConfigInput]
    outputs: list[ConfigOutput]
    options: dict[str, Any]


class ConfigQuery(Query):
    limit: Whole | None = None
    marker: str | None = None
    #: Configs of all projects: not supported.
    global_tenant: bool = False
    #: Whether the list includes the configs that Stoker derived for runs.
    derived: bool = True


@operation(200, {"software_configs": list[ConfigSummary]})
def index(request: RequestContext, tx: Tx, query: ConfigQuery) -> Response:
    """List the project's configs, newest first."""
    if query.global_tenant:
        raise Forbidden("You are not authorized to complete this action.")
    start = None
    if query.marker:  # an unknown marker is ignored, as in Heat
        start = configs.position(tx, query.marker, request.project)

    def read(tx: Tx, before: int | None, most: int) -> list[tuple[int, Any]]:
        return list(configs.page(tx, request.project, before=before, limit=most, with_derived=query.derived))

    return pages.reply(request, tx, "software_configs", read, first=1000, start=start, limit=query.limit)


@operation(
    200,
    {"software_config": SoftwareConfig},
    example={"name": "hello", "group": "script", "config": "#!/bin/sh\n", "outputs": [{"name": "result"}]},
)
def create(request: RequestContext, tx: Tx, body: NewConfig) -> bytes:
    """Create a config. Raises Invalid, or RequestLimitExceeded if the project has its maximum of configs."""
    limit, project_id = request.app.settings.max_software_configs, request.project
    check_limit(tx, "software configs", project_id, limit, lambda: configs.count(tx, project_id))
    _, rendered = new_config(tx, request.project, **asdict(body))
    return _enclose(rendered)


@operation(200, {"software_config": SoftwareConfig})
def show(request: RequestContext, tx: Tx) -> bytes:
    """Return a config with its secrets redacted."""
    rendered = configs.body(tx, request.path["config_id"], request.project)
    return _enclose(rows.dump(redact_config(tx, rows.load(rendered))))


@operation(204, errors=(409,))
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a config. Raises EntityNotFound, or ResourceInUse if a deployment or a schedule uses the config."""
    request.subject.config_name = configs.find_name(tx, request.path["config_id"])
    delete_config(tx, request.path["config_id"], request.project)


def _enclose(rendered: str) -> bytes:
    return f'{{"software_config":{rendered}}}'.encode()
