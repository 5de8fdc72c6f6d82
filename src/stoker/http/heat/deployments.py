"""/v1/{project}/software_deployments"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker.deployments import alone, manage
from stoker.deployments.alone import Wanted
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound, Forbidden, Invalid, RequestLimitExceeded
from stoker.model.status import Action, Status
from stoker.stacks import deployed, signals
from stoker.store import configs, deployments
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = deployments.listed(tx, call.project, call.query.get("server_id"))
    return Reply(200, {"software_deployments": [shapes.deployment(each) for each in found]})


async def metadata(call: Call) -> Reply:
    """On the event loop: mostly answered from memory."""
    server_id = call.path["server_id"]
    if call.only not in (None, server_id):
        raise Forbidden("You are not authorized to complete this action.")
    found = call.services.documents.heat(server_id, call.project)
    if found is None:
        found = await call.in_thread(call.services.documents.load_heat, server_id, call.project)
    if call.only is not None:  # an agent asks, and no user who wants to see
        call.services.documents.went_out(found, "POLL_SERVER_HEAT")
    return Reply(200, found.body)


def create(call: Call) -> Reply:
    body = reading.body(call)
    limit = call.services.settings.max_software_deployments

    def do(tx: Tx) -> Deployment:
        if 0 <= limit <= deployments.count(tx, call.project):
            raise RequestLimitExceeded(f"this project may have {limit} deployments and has them: delete some")
        config_id = _config_id(tx, call, body.get("config_id"))
        if body.get("signal_transport") is not None:
            return _derived(tx, call, body, config_id)
        given = _entered(tx, call, _given(tx, call, body, config_id))
        return manage.add(tx, given, call.user.user_name)

    return _shown(call.services.store.write(do))


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        return _shown(deployments.get(tx, call.path["deployment_id"], call.project))


def update(call: Call) -> Reply:
    body = reading.body(call)

    def do(tx: Tx) -> Deployment:
        known = deployments.get(tx, call.path["deployment_id"], call.project)
        old = signals.hold(tx, known)
        if old is None:
            raise EntityNotFound.of("Software deployment", known.id)
        changes: dict[str, Any] = {
            name: read(body[name], name) for name, read in _CHANGEABLE.items() if body.get(name) is not None
        }
        if "config_id" in changes:
            _config_id(tx, call, changes["config_id"])
        changed = replace(old, **changes, updated_at=tx.now)
        begins = changed.status == Status.IN_PROGRESS and old.status != Status.IN_PROGRESS
        if begins or changed.config_id != old.config_id:
            changed = _entered(tx, call, changed)
        changed = manage.save(tx, changed)
        if old.status == Status.IN_PROGRESS:
            signals.report(tx, call.services.engine, changed, before=old)
        return changed

    return _shown(call.services.store.write(do))


def delete(call: Call) -> Reply:
    def do(tx: Tx) -> None:
        known = deployments.get(tx, call.path["deployment_id"], call.project)
        deployed.delete(tx, call.services.engine, known)

    call.services.store.write(do)
    return Reply(204)


_CHANGEABLE: Mapping[str, Any] = {
    "config_id": reading.text,
    "input_values": reading.mapping,
    "output_values": reading.mapping,
    "action": reading.text,
    "status": reading.text,
    "status_reason": lambda value, name: reading.text(value, name, 65535),
}


def _config_id(tx: Tx, call: Call, said: Any) -> str:
    id = reading.text(said, "config_id")
    if id is None or not configs.exists(tx, id, call.project):
        raise Invalid(f"Config with id {id} not found")
    return id


def _server_id(said: Any) -> str:
    id = reading.text(said, "server_id", 36)
    if not id:
        raise Invalid("server_id is required: the id of the server to deploy to")
    return id


def _given(tx: Tx, call: Call, body: dict[str, Any], config_id: str) -> Deployment:
    """As Heat's own call: the config is ready for the agent, whoever made it."""
    reading.text(body.get("stack_user_project_id"), "stack_user_project_id", 64)
    return Deployment(
        id=str(uuid4()),
        project_id=call.project,
        server_id=_server_id(body.get("server_id")),
        config_id=config_id,
        action=reading.text(body.get("action"), "action"),
        status=reading.text(body.get("status"), "status"),
        status_reason=reading.text(body.get("status_reason"), "status_reason", 65535),
        input_values=reading.mapping(body.get("input_values"), "input_values") or {},
        output_values={},
        created_at=tx.now,
    )


def _entered(tx: Tx, call: Call, deployment: Deployment) -> Deployment:
    """Raises DeploymentRefused."""
    return manage.entered(tx, deployment, call.user.user_name, gate=call.services.engine.services.gate)


def _derived(tx: Tx, call: Call, body: dict[str, Any], config_id: str) -> Deployment:
    """Ours: the config is a source, and the server derives from it what Heat's clients derive themselves."""
    source = configs.get(tx, config_id, call.project)
    wanted = Wanted(
        content=alone.content_of(source),
        action=reading.text(body.get("action"), "action") or Action.CREATE.value,
        name=reading.text(body.get("name"), "name") or source.name,
        input_values=reading.mapping(body.get("input_values"), "input_values") or {},
        signal_transport=reading.text(body.get("signal_transport"), "signal_transport") or "",
        timeout=_seconds(body.get("timeout")),
        asked_by=call.user.user_name,
    )
    server_id = _server_id(body.get("server_id"))
    return alone.begin(tx, call.services.engine.services, wanted, project_id=call.project, server_id=server_id)


def _seconds(said: Any) -> float | None:
    if said is None:
        return None
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said < 2**31:
        raise Invalid(f"timeout must be a number of seconds, not {said!r}")
    return said


def _shown(deployment: Deployment) -> Reply:
    return Reply(200, {"software_deployment": shapes.deployment(deployment)})
