"""
Deployments without a resource of a stack, created by REST clients and triggers.

Such a deployment uses its own id where others use the id of their resource: in names of queues and objects, for its
stack user and in its signal URL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from stoker.deployments import deadlines, runs, service
from stoker.deployments.derive import DEPLOY_PREFIX, TIMEOUT, derived_inputs, mark_secrets, substitute
from stoker.deployments.owners import Owners
from stoker.identity.signal_tokens import SignalTokens
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.errors import DeploymentRefused, Invalid
from stoker.model.server import Server
from stoker.model.trigger import Content
from stoker.policy.authorizer import DeploymentAuthorizer
from stoker.store import configs, deployments, servers
from stoker.store import runs as stored
from stoker.store.tx import Tx
from stoker.transports import Transports
from stoker.transports.base import NeedsProvisioning, Platform, SignalTransport, TransportTarget
from stoker.transports.selection import AUTO
from stoker.work import Work

#: Value of a result: id of the derived config that was run.
RUN = "deploy_config_id"
_TRANSPORT, _SERVER, _ACTION = (f"{DEPLOY_PREFIX}{n}" for n in ("signal_transport", "server_id", "action"))
#: Transports whose results arrive at the deployment's own URL: upstream agents post there without a resource.
_BY_URL = ("CFN_SIGNAL", "HEAT_SIGNAL")
_OWN, _URL = "STOKER_SIGNAL", "CFN_SIGNAL"
#: Inputs that transports may add; each transport adds some of them.
_URL_INPUTS = tuple(
    DEPLOY_PREFIX + name
    for name in (
        *("signal_id", "signal_verb", "queue_id"),
        *("auth_url", "username", "user_id", "password", "project_id", "region_name"),
    )
)


class DeploymentEnv(Protocol):
    """The dependencies of this module. ``resources.env.ResourceEnv`` implements the protocol."""

    @property
    def transports(self) -> Transports: ...

    @property
    def work(self) -> Work: ...

    @property
    def platform(self) -> Platform: ...

    @property
    def signal_tokens(self) -> SignalTokens: ...

    @property
    def authorizer(self) -> DeploymentAuthorizer: ...

    @property
    def owners(self) -> Owners: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run to start on one server."""

    content: Content
    action: str
    name: str | None
    input_values: Mapping[str, Any] = field(default_factory=dict)
    signal_transport: str
    timeout: float | None = None
    requested_by: str | None = None
    #: Names of secret inputs, in addition to those that their declaration marks as secret.
    secret: tuple[str, ...] = ()


def content_of(config: Config) -> Content:
    """Return the content of a config, without facts of a stack."""
    return Content(
        name=config.name,
        group=config.group or UNGROUPED,
        config=config.config,
        inputs=config.inputs,
        outputs=config.outputs,
        options=config.options,
        facts={},
    )


def transport_named(tx: Tx, env: DeploymentEnv, name: str | None, server_id: str) -> SignalTransport:
    """
    Return the signal transport called ``name``, or for None and AUTO the one that suits the server.

    Raises Invalid if there is no such transport, or if the transport requires a resource.
    """
    known = env.transports
    if name not in (None, *known.signal_names):
        raise Invalid(f"signal_transport {name!r:.100} is none of {', '.join(known.signal_names)}")
    found = known.signal_transports[
        _select_transport(servers.find(tx, server_id)) if name in (None, AUTO) else str(name)
    ]
    if not env.platform.keeps_users and getattr(found, "logs_in", False) and found.signal_name not in _BY_URL:
        raise Invalid(
            f"{found.signal_name} needs a user at Keystone, which only resources of stacks get: use CFN_SIGNAL"
        )
    return found


def _select_transport(server: Server | None) -> str:
    """Select Stoker's own channel for Stoker's agents. An upstream agent can post to a URL in any case."""
    return _OWN if server is not None and server.has_channel else _URL


def begin(
    tx: Tx, env: DeploymentEnv, request: RunRequest, *, project_id: str, server_id: str, trigger_id: str | None = None
) -> Deployment:
    """
    Derive the config and create a deployment on the server.

    Returns the deployment with its first run. Raises Invalid, UserParameterMissing, DeploymentRefused.
    """
    id = str(uuid4())
    transport = transport_named(tx, env, request.signal_transport, server_id)
    target = _target(id, project_id, request.name, run=1)
    if isinstance(transport, NeedsProvisioning):
        transport.open(tx, env.platform, target)
    run = _run(tx, env, request, transport, target, server_id)
    try:
        made = service.begin(
            tx,
            run,
            authorizer=env.authorizer,
            project_id=project_id,
            server_id=server_id,
            deployment_id=id,
            trigger_id=trigger_id,
        )
    except DeploymentRefused:
        if isinstance(transport, NeedsProvisioning):
            transport.close(tx, env.platform, target)
        raise
    if request.timeout is not None and transport.awaits_signal:
        deadlines.set_deadline(tx, env.work, made, request.timeout)
    return made


def begin_again(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> Deployment:
    """
    Start another run of the deployment.

    Only the inputs for the signal change, so that results of the earlier run cannot end the new one.
    """
    config = configs.get(tx, deployment.config_id, deployment.project_id)
    name = deployment.signal_transport
    if name is None:  # the config belongs to a client, and stays
        deadlines.cancel_deadline(tx, env.work, deployment)
        again = replace(config, id=str(uuid4()), created_at=tx.now, is_owned=True)
        return service.rerun(tx, deployment, again, requested_by, authorizer=env.authorizer)
    transport = env.transports.signal_transports[name]
    last = stored.find(tx, deployment.id, deployment.config_id)
    target = _target(deployment.id, deployment.project_id, config.name, run=last.number + 1 if last else 2)
    fresh = _signal_inputs(tx, env, transport, target)
    inputs = tuple({**each, "value": fresh.get(each["name"], each.get("value"))} for each in config.inputs)
    run = service.Run(
        action=deployment.action or "",
        name=config.name,
        group=config.group or UNGROUPED,
        config=config.config,
        inputs=inputs,
        outputs=config.outputs,
        options=config.options,
        input_values=deployment.input_values,
        requested_by=requested_by,
        signal_transport=name,
        awaits_signal=transport.awaits_signal,
    )
    deadlines.cancel_deadline(tx, env.work, deployment)
    begun = service.begin_again(tx, deployment, run, authorizer=env.authorizer)
    if (seconds := deadlines.seconds_of(inputs)) is not None and transport.awaits_signal:
        deadlines.set_deadline(tx, env.work, begun, seconds)
    return begun


def withdraw(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """Delete the deployment with its derived config and the object or queue for its results."""
    deadlines.cancel_deadline(tx, env.work, deployment)
    service.withdraw(tx, deployment)
    _close(tx, env, deployment)


def change_config(tx: Tx, env: DeploymentEnv, before: Deployment, changed: Deployment, requested_by: str) -> Deployment:
    """
    Start a run with another config, which a REST client chose for its deployment.

    The new config itself determines how results return, so the object or queue for earlier results is closed.
    """
    deadlines.cancel_deadline(tx, env.work, before)
    _close(tx, env, before)
    return service.change_config(tx, before, replace(changed, signal_transport=None, cancelling=False), requested_by)


def _close(tx: Tx, env: DeploymentEnv, deployment: Deployment) -> None:
    """Close the object or queue for the deployment's results."""
    transport = env.transports.signal_transports.get(deployment.signal_transport or "")
    if isinstance(transport, NeedsProvisioning):
        transport.close(tx, env.platform, _target(deployment.id, deployment.project_id, None))


def url(env: DeploymentEnv, project_id: str, deployment_id: str, run: int) -> str:
    """Return the signal URL of one run. The URL authorizes its holder to signal only this run of this deployment."""
    token = env.signal_tokens.token(deployment_id)
    return (
        f"{env.platform.public_url}/v1/{project_id}/software_deployments/{deployment_id}/signal?token={token}&run={run}"
    )


def source_inputs(
    inputs: tuple[Mapping[str, Any], ...],
) -> tuple[tuple[Mapping[str, Any], ...], dict[str, Any]]:
    """Split the inputs of a derived config into declarations and values, without those specific to one deployment."""
    own = [each for each in inputs if not each["name"].startswith(DEPLOY_PREFIX)]
    declared = tuple({name: part for name, part in each.items() if name != "value"} for each in own)
    return declared, {each["name"]: each["value"] for each in own if "value" in each}


def is_pending(tx: Tx, deployment_id: str) -> Deployment | None:
    """Return the deployment with the id if it has no resource, else None."""
    found = deployments.find(tx, deployment_id)
    return found if found is not None and found.resource_id is None else None


def check(tx: Tx, env: DeploymentEnv, request: RunRequest, server_id: str) -> None:
    """Check what ``begin`` would check, without opening anything. Raises Invalid, UserParameterMissing."""
    transport = transport_named(tx, env, request.signal_transport, server_id)
    url_inputs = _URL_INPUTS if transport.signal_name in _BY_URL or isinstance(transport, NeedsProvisioning) else ()
    facts = _facts(request, transport, server_id, dict.fromkeys(url_inputs, ""))
    _render(request.content, derived_inputs(request.content.inputs, request.input_values, facts))


def _facts(
    request: RunRequest, transport: SignalTransport, server_id: str, url_inputs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the ``deploy_*`` inputs of a run. ``url_inputs``: those of the signal transport."""
    facts = {
        _SERVER: server_id,
        _ACTION: request.action,
        **request.content.facts,
        _TRANSPORT: transport.signal_name,
        **url_inputs,
    }
    if transport.awaits_signal:
        facts[runs.STATUS_AWARE] = "true"
    if request.timeout is not None:
        facts[TIMEOUT] = str(request.timeout)
    return facts


def _run(
    tx: Tx, env: DeploymentEnv, request: RunRequest, transport: SignalTransport, target: TransportTarget, server_id: str
) -> service.Run:
    content = request.content
    facts = _facts(request, transport, server_id, _signal_inputs(tx, env, transport, target))
    derived = derived_inputs(content.inputs, request.input_values, facts)
    inputs = mark_secrets(derived, tx.secrets.texts, request.secret)
    return service.Run(
        action=request.action,
        name=request.name,
        group=content.group,
        config=_render(content, inputs),
        inputs=inputs,
        outputs=content.outputs,
        options=content.options,
        input_values=request.input_values,
        requested_by=request.requested_by,
        signal_transport=transport.signal_name,
        awaits_signal=transport.awaits_signal,
    )


def _render(content: Content, inputs: tuple[Mapping[str, Any], ...]) -> Any:
    """Return the config with the values of its inputs. Raises UserParameterMissing."""
    if content.input_key is None:
        return content.config
    values = {entry["name"]: entry["value"] for entry in inputs}
    return substitute(content.config or {}, values, key=content.input_key, strict=content.strict)


def _signal_inputs(
    tx: Tx, env: DeploymentEnv, transport: SignalTransport, target: TransportTarget
) -> Mapping[str, Any]:
    if transport.signal_name in _BY_URL:
        where = url(env, target.project_id, target.resource_id, int(target.run))
        return {f"{DEPLOY_PREFIX}signal_id": where, f"{DEPLOY_PREFIX}signal_verb": "POST"}
    return transport.signal_inputs(tx, env.platform, target)


def _target(id: str, project_id: str, name: str | None, run: int = 0) -> TransportTarget:
    return TransportTarget(
        resource_id=id,
        resource_name=id,
        name=name or id,
        stack_id=id,
        stack_name="deployment",
        project_id=project_id,
        run=str(run) if run else "",
    )
