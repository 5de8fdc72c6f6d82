"""/v1/{project}/software_deployments"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from stoker.deployments import representation, service, standalone
from stoker.deployments.standalone import RunRequest
from stoker.http import paged_list, params
from stoker.http.pieces import LARGE
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import Deployment
from stoker.model.errors import Invalid, RequestLimitExceeded
from stoker.model.status import Action, Status
from stoker.stacks import deployment_actions
from stoker.store import configs, deployments
from stoker.store.tx import Tx


def index(request: RequestContext) -> Response:
    """List the project's deployments, oldest first, optionally of one server."""
    server_id = params.server_id(request.query.get("server_id"))
    limit = params.whole(request.query.get("limit"), "limit")
    store, marker, start = request.app.store, request.query.get("marker"), None
    if marker:  # an unknown marker is ignored, as in the list of configs
        with store.read() as tx:
            start = deployments.position(tx, marker, request.project)

    def read(after: int | None, most: int) -> list[tuple[int, Any]]:
        with store.read() as tx:
            found = deployments.page(tx, request.project, server_id, after=after, limit=most)
            return [(position, representation.deployment(tx, each)) for position, each in found]

    def fit(after: int | None, most: int) -> int:
        with store.read() as tx:
            return deployments.count_fitting(tx, request.project, server_id, after=after, limit=most, size=LARGE)

    return paged_list.reply(request, "software_deployments", read, start=start, limit=limit, first=100, fit=fit)


async def metadata(request: RequestContext) -> Response:
    """Return the configs that a server has to run. Runs on the event loop; most requests are answered from memory."""
    server_id = request.path["server_id"]
    request.require_resource(server_id)
    params.server_id(server_id)
    redacted = request.only is None  # an agent receives the secrets, a person does not
    found = request.app.documents.heat(server_id, request.project, redacted=redacted)
    if found is None:
        load = request.app.documents.load_heat
        found = await request.in_thread(load, server_id, request.project, redacted=redacted)
    if not redacted:
        request.app.documents.record_sent(found, "POLL_SERVER_HEAT")
    return Response(200, found.body)


def create(request: RequestContext) -> Response:
    """
    Create a deployment.

    With ``signal_transport``, Stoker derives a config for the run. Without it, the config is deployed unchanged, as in
    Heat.
    """
    body = params.body(request)
    limit = request.app.settings.max_software_deployments

    def do(tx: Tx) -> Response:
        if 0 <= limit <= deployments.count(tx, request.project):
            raise RequestLimitExceeded(f"this project may have {limit} deployments and has them: delete some")
        config_id = _config_id(
            tx, request, body.get("config_id"), params.mapping(body.get("input_values"), "input_values") or {}
        )
        if body.get("signal_transport") is not None:
            return _serialize(tx, _create_derived(tx, request, body, config_id))
        given = _authorize(tx, request, _create_from_config(tx, request, body, config_id))
        return _serialize(tx, service.add(tx, given, request.user.user_name))

    return request.app.store.write(do)


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        return _serialize(tx, deployments.get(tx, request.path["deployment_id"], request.project))


def update(request: RequestContext) -> Response:
    """
    Change a deployment.

    Another config starts a new run, as does the status IN_PROGRESS for a deployment that has ended. A final status has
    the same consequences as a result from the agent. Raises Conflict, DeploymentRefused, EntityNotFound or Invalid.
    """
    body = params.body(request)

    def do(tx: Tx) -> Response:
        known = deployments.get(tx, request.path["deployment_id"], request.project)
        changes: dict[str, Any] = {
            name: read(body[name], name) for name, read in _CHANGEABLE.items() if body.get(name) is not None
        }
        _config_id(tx, request, changes.get("config_id", known.config_id), changes.get("input_values", {}))
        return _serialize(tx, deployment_actions.change(tx, request.app.engine, known, changes, request.user.user_name))

    return request.app.store.write(do)


def delete(request: RequestContext) -> Response:
    """Delete a deployment. A stack resource that waits for it fails; a trigger counts it as cancelled."""

    def do(tx: Tx) -> None:
        known = deployments.get(tx, request.path["deployment_id"], request.project)
        deployment_actions.delete(tx, request.app.engine, known)

    request.app.store.write(do)
    return Response(204)


def _status(value: Any, name: str) -> str | None:
    """Check the status. Any other value would count as the end of a run that no agent reported."""
    status = params.text(value, name)
    if status not in (None, *_STATUSES):
        raise Invalid(f"{name} {status!r:.100} is none of {', '.join(_STATUSES)}")
    return status


_STATUSES = tuple(status.value for status in (Status.IN_PROGRESS, Status.COMPLETE, Status.FAILED))
_CHANGEABLE: Mapping[str, Any] = {
    "config_id": params.text,
    "input_values": params.mapping,
    "output_values": params.mapping,
    "action": params.text,
    "status": _status,
    "status_reason": lambda value, name: params.text(value, name, 65535),
}


def _config_id(tx: Tx, request: RequestContext, said: Any, values: Mapping[str, Any]) -> str:
    """
    Return the config's id. Raises Invalid if the config does not exist.

    The transaction then treats the values of the config's secret inputs as secrets.
    """
    id = params.text(said, "config_id")
    secret = None if id is None else configs.secret_inputs(tx, id, request.project)
    if id is None or secret is None:
        raise Invalid(f"Config with id {id} not found")
    tx.secrets.learn(values.get(name) for name in secret)
    return id


def _server_id(said: Any) -> str:
    id = params.server_id(said)
    if not id:
        raise Invalid("server_id is required: the id of the server to deploy to")
    return id


def _create_from_config(tx: Tx, request: RequestContext, body: dict[str, Any], config_id: str) -> Deployment:
    """Return a deployment that runs the config unchanged, as in Heat. Heat's clients derive the config themselves."""
    params.text(body.get("stack_user_project_id"), "stack_user_project_id", 64)
    return Deployment(
        id=str(uuid4()),
        project_id=request.project,
        server_id=_server_id(body.get("server_id")),
        config_id=config_id,
        action=params.text(body.get("action"), "action"),
        status=_status(body.get("status"), "status"),
        status_reason=params.text(body.get("status_reason"), "status_reason", 65535),
        input_values=params.mapping(body.get("input_values"), "input_values") or {},
        output_values={},
        created_at=tx.now,
    )


def _authorize(tx: Tx, request: RequestContext, deployment: Deployment) -> Deployment:
    """Raises DeploymentRefused."""
    return service.authorize(tx, deployment, request.user.user_name, authorizer=request.app.engine.env.authorizer)


def _create_derived(tx: Tx, request: RequestContext, body: dict[str, Any], config_id: str) -> Deployment:
    """
    Start a run of a config that Stoker derives from ``config_id``.

    This request is Stoker's own: Heat's clients derive the config themselves.
    """
    source = configs.get(tx, config_id, request.project)
    wanted = RunRequest(
        content=standalone.content_of(source),
        action=params.text(body.get("action"), "action") or Action.CREATE.value,
        name=params.text(body.get("name"), "name") or source.name,
        input_values=params.mapping(body.get("input_values"), "input_values") or {},
        signal_transport=params.text(body.get("signal_transport"), "signal_transport") or "",
        timeout=_seconds(body.get("timeout")),
        requested_by=request.user.user_name,
    )
    server_id = _server_id(body.get("server_id"))
    return standalone.begin(tx, request.app.engine.env, wanted, project_id=request.project, server_id=server_id)


def _seconds(said: Any) -> float | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said < 2**31:
        raise Invalid(f"timeout must be a number of seconds, not {said!r}")
    return said


def _serialize(tx: Tx, deployment: Deployment) -> Response:
    return Response(200, {"software_deployment": representation.deployment(tx, deployment)})
