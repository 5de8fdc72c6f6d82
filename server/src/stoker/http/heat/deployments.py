"""/v1/{project}/software_deployments"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal
from uuid import uuid4

from msgspec import UNSET, Meta
from msgspec.structs import asdict

from stoker.deployments import service
from stoker.deployments.derive import redact_deployment
from stoker.deployments.run_plan import RunRequest
from stoker.deployments.schema import check_values, refuse_missing
from stoker.http import audit_trail, pages
from stoker.http.contracts import (
    Absent,
    Answer,
    Body,
    Count,
    Id,
    LongText,
    Moment,
    Name,
    Query,
    Seconds,
    ServerId,
    ShortText,
    Time,
    Whole,
    convert,
    operation,
)
from stoker.http.heat.configs import SoftwareConfig
from stoker.http.request import LARGE, RequestContext, Response
from stoker.model.config import Config, Content
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid
from stoker.model.stack import Action
from stoker.store import audit, configs, deployments, servers
from stoker.store.tx import Tx, check_limit

SIGNAL_TRANSPORTS = (
    "AUTO",
    "CFN_SIGNAL",
    "HEAT_SIGNAL",
    "NO_SIGNAL",
    "STOKER_SIGNAL",
    "TEMP_URL_SIGNAL",
    "ZAQAR_SIGNAL",
)
#: Other packages may add transports, so the type accepts any name.
SignalTransport = Annotated[Name, Meta(extra_json_schema={"enum": list(SIGNAL_TRANSPORTS)})]


class _DeploymentValues(Body):
    input_values: dict[str, Any] | None = None
    action: Name | None = None
    # Any other status would count as the end of a run that no agent reported.
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED"] | None = None
    status_reason: LongText | None = None


class NewDeployment(_DeploymentValues, kw_only=True):
    """
    A deployment to create.

    With ``signal_transport``, Stoker derives the config that runs from ``config_id``, and checks the input values.
    ``name`` is the name of the derived config, and ``timeout`` the maximum seconds of a run.
    """

    config_id: Name
    server_id: Annotated[ServerId, Meta(min_length=1)]
    stack_user_project_id: ShortText | None = None
    signal_transport: SignalTransport | None = None
    name: Name | None = None
    timeout: Seconds | None = None
    allow_undeclared: Annotated[
        bool | None, Meta(description="Whether input_values may have names that the config does not declare")
    ] = None


class DeploymentChanges(_DeploymentValues):
    """Changes of a deployment, or the result of its run."""

    config_id: Name | None = None
    output_values: dict[str, Any] | None = None


class SoftwareDeployment(Answer):
    """``config_id`` is the config that runs. Each run has another one."""

    id: Id
    server_id: str  # a stack's template may say an empty one
    config_id: Id
    input_values: dict[str, Any]
    output_values: dict[str, Any]
    action: str | None
    status: str | None
    status_reason: str | None
    changed: Annotated[bool | None, Meta(description="Whether the last run changed the server; null if not known")]
    changed_items: Annotated[Count, Meta(description="The number of items that it changed; 0 if not known")]
    creation_time: Time
    updated_time: Time | Absent = UNSET
    server_name: str | Absent | None = UNSET
    stack_name: str | Absent | None = UNSET
    resource_name: str | Absent | None = UNSET
    config_name: str | Absent | None = UNSET
    requested_by: Annotated[
        str | Absent | None, Meta(description="The user who requested the run; null for an action of a stack")
    ] = UNSET


class NamesQuery(Query):
    names: Annotated[
        bool, Meta(description="Whether to name the server, the stack, the resource, the config and the requester")
    ] = False


class DeploymentQuery(NamesQuery):
    server_id: ServerId | None = None
    config: Annotated[str, Meta(description="The name or the id of a config: only the deployments that run it")] = ""
    contains: Annotated[str | None, Meta(description="Part of the name of the config")] = None
    newest_first: bool = False
    status: Literal["IN_PROGRESS", "COMPLETE", "FAILED"] | None = None
    of_client: Annotated[
        bool, Meta(description="Whether to list only deployments of clients, of no stack and no trigger")
    ] = False
    ended_since: Annotated[Moment | None, Meta(description="Only runs that ended at this time or later")] = None
    limit: Whole | None = None
    marker: str | None = None


class DeletionQuery(Query):
    force: Annotated[bool, Meta(description="Whether to delete the deployment without an undo")] = False


@operation(200, {"software_deployments": list[SoftwareDeployment]})
def index(request: RequestContext, tx: Tx, query: DeploymentQuery) -> Response:
    """List the project's deployments, optionally of one server or config, with one status or a text in their names."""
    only = deployments.Filter(
        project_id=request.project,
        server_id=query.server_id,
        config=query.config,
        contains=query.contains,
        status=query.status,
        of_client=query.of_client,
        ended_since=query.ended_since,
        newest_first=query.newest_first,
    )
    start = None
    if query.marker:  # an unknown marker is ignored, as in the list of configs
        start = deployments.position(tx, query.marker, request.project)

    def read(tx: Tx, after: int | None, most: int) -> list[tuple[int, Any]]:
        page = deployments.page(tx, only, after=after, limit=most)
        names = audit.names_of_all(tx, [deployment.id for _, deployment in page]) if query.names else {}
        return [
            (position, redact_deployment(tx, deployment, names.get(deployment.id))) for position, deployment in page
        ]

    def fit(tx: Tx, after: int | None, most: int) -> int:
        return deployments.count_fitting(tx, only, after=after, limit=most, size=LARGE)

    return pages.reply(request, tx, "software_deployments", read, first=100, start=start, limit=query.limit, fit=fit)


@operation(200, {"metadata": list[SoftwareConfig]})
async def metadata(request: RequestContext) -> Response:
    """Return the configs that a server has to run."""
    # Runs on the event loop; most requests are answered from memory.
    server_id = request.path["server_id"]
    request.require_resource(server_id)
    convert(server_id, ServerId, "server_id")
    redacted = request.caller.resource is None  # an agent receives the secrets, a person does not
    document = request.app.documents.heat(server_id, request.project, redacted=redacted)
    if document is None:
        load = request.app.documents.load_heat
        document = await request.in_thread(load, server_id, request.project, redacted=redacted)
    if not redacted:
        request.app.documents.record_sent(document, "POLL_SERVER_HEAT")
    return Response(200, document.body)


@operation(200, {"software_deployment": SoftwareDeployment}, errors=(409,))
def create(request: RequestContext, tx: Tx, body: NewDeployment) -> dict[str, Any]:
    """
    Create a deployment. Raises Conflict if the server's agent has no hook for the config.

    With `signal_transport`, Stoker derives a config for the run. Without it, the config is deployed unchanged, as in
    Heat.
    """
    limit, project_id = request.app.settings.max_software_deployments, request.project
    check_limit(tx, "deployments", project_id, limit, lambda: deployments.count(tx, project_id))
    servers.prime_with_config(tx, body.server_id, body.config_id)
    config = _find_config(tx, project_id, body.config_id, body.input_values or {})
    if body.signal_transport is not None:
        return enclose(tx, _create_derived(tx, request, body, config))
    new = _new_deployment(tx, project_id, body)
    return enclose(tx, service.run_config(tx, request.app.engine.env, new, config, request.user.user_name))


@operation(200, {"software_deployment": SoftwareDeployment})
def show(request: RequestContext, tx: Tx, query: NamesQuery) -> dict[str, Any]:
    """Return a deployment."""
    deployment = deployments.get(tx, request.path["deployment_id"], request.project)
    names = audit.names_of(tx, deployment.id) if query.names else None
    return {"software_deployment": redact_deployment(tx, deployment, names)}


@operation(200, {"software_deployment": SoftwareDeployment})
def update(request: RequestContext, tx: Tx, body: DeploymentChanges) -> dict[str, Any]:
    """
    Change a deployment.

    Another config starts a new run, as does the status IN_PROGRESS for a deployment that has ended. A final status has
    the same consequences as a result from the agent. Raises Conflict, DeploymentRefused, EntityNotFound or Invalid.
    """
    changes = {name: value for name, value in asdict(body).items() if value is not None}
    deployment = find_described(tx, request)
    if body.config_id or body.input_values is not None:  # a result alone does not need the text of its config
        _find_config(tx, request.project, body.config_id or deployment.config_id, body.input_values or {})
    user = request.user.user_name
    return enclose(tx, service.change(tx, request.app.engine.env, deployment, changes, user))


@operation(204)
def delete(request: RequestContext, tx: Tx, query: DeletionQuery) -> None:
    """
    Delete a deployment. A stack resource that waits for it fails; a trigger counts it as cancelled.

    If the config has the option `undo`, the deployment disappears when a run has undone it. Raises Invalid,
    DeploymentRefused.
    """
    deployment = find_described(tx, request)
    service.remove(tx, request.app.engine.env, deployment, request.user.user_name, force=query.force)


def find_described(tx: Tx, request: RequestContext) -> Deployment:
    """Return the deployment of the path, and name it for the audit log. Raises EntityNotFound."""
    deployment = deployments.get(tx, request.path["deployment_id"], request.project)
    audit_trail.describe_deployment(tx, request, deployment)
    return deployment


def _find_config(tx: Tx, project_id: str, id: str, values: Mapping[str, Any]) -> Config:
    """
    Return the project's config. The transaction learns its secrets in the input values of a deployment.

    Raises Invalid if the config does not exist.
    """
    config = configs.find(tx, id)
    if config is None or config.project_id != project_id:
        raise Invalid(f"Config with id {id} not found")
    tx.secrets.learn(values.get(entry["name"]) for entry in config.inputs if entry.get("secret"))
    return config


def _new_deployment(tx: Tx, project_id: str, body: NewDeployment) -> Deployment:
    """Return a deployment that runs the config unchanged, as in Heat. Heat's clients derive the config themselves."""
    return Deployment(
        id=str(uuid4()),
        project_id=project_id,
        server_id=body.server_id,
        config_id=body.config_id,
        action=body.action,
        status=body.status,
        status_reason=body.status_reason,
        input_values=body.input_values or {},
        output_values={},
        created_at=tx.now,
    )


def _create_derived(tx: Tx, request: RequestContext, body: NewDeployment, source: Config) -> Deployment:
    """
    Start a run of a config that Stoker derives from ``source``.

    This request is Stoker's own: Heat's clients derive the config themselves. Raises Invalid for wrong input values.
    """
    content, action = Content.of(source), body.action or Action.CREATE.value
    values = check_values(content, action, body.input_values or {}, allow_undeclared=bool(body.allow_undeclared))
    refuse_missing(content, [values])
    run = RunRequest(
        content=content,
        action=action,
        name=body.name or source.name,
        project_id=source.project_id,
        server_id=body.server_id,
        input_values=values,
        signal_transport=body.signal_transport or "",
        timeout=body.timeout,
        requested_by=request.user.user_name,
    )
    return service.start_run(tx, request.app.engine.env, run)


def enclose(tx: Tx, deployment: Deployment) -> dict[str, Any]:
    return {"software_deployment": redact_deployment(tx, deployment)}
