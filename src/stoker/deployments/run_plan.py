"""Plans of runs: the derived config, with the inputs that tell the agent how to report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from stoker.deployments import deadlines, runs
from stoker.deployments.derive import DEPLOY_PREFIX, TIMEOUT, derived_inputs, mark_secrets, substitute
from stoker.deployments.env import DeploymentEnv
from stoker.deployments.owners import Client
from stoker.deployments.undo import Undo
from stoker.model.check import CheckSettings
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.status import Action
from stoker.model.trigger import Content
from stoker.store import configs
from stoker.store import runs as stored
from stoker.store.tx import Tx
from stoker.transports.base import SignalTransport

_TRANSPORT, _SERVER, _ACTION = (f"{DEPLOY_PREFIX}{name}" for name in ("signal_transport", "server_id", "action"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A run to start on one server."""

    content: Content
    action: str
    name: str | None
    input_values: Mapping[str, Any] = field(default_factory=dict)
    signal_transport: str | None
    #: The limit of the run in seconds.
    timeout: float | None = None
    #: Name of the requesting user; None: an action of a stack starts the run.
    requested_by: str | None = None
    #: PREVIEW or UNDO; None: the run applies the config.
    mode: str | None = None
    #: How the deployment is checked, in place of the config's options.
    checks: CheckSettings = CheckSettings()
    #: Names of secret inputs, in addition to those that their declaration marks as secret.
    secret: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run that can start: its derived config, and how its result returns."""

    config: Config
    action: str | None
    input_values: Mapping[str, Any]
    #: None: a client has created the config and decides how the result returns.
    transport: SignalTransport | None
    timeout: float | None = None
    requested_by: str | None = None
    mode: str | None = None
    #: How the deployment is checked; None: as before.
    checks: CheckSettings | None = None

    @property
    def awaits_signal(self) -> bool:
        """Whether a signal ends the run. Otherwise the run has ended once it is in the server's document."""
        return self.transport is None or self.transport.awaits_signal


def plan_run(
    tx: Tx,
    request: RunRequest,
    transport: SignalTransport,
    signal_inputs: Mapping[str, Any],
    *,
    project_id: str,
    server_id: str,
) -> PlannedRun:
    """
    Plan the run of a request.

    ``signal_inputs`` are the ``deploy_*`` inputs of the transport. Raises Invalid, UserParameterMissing.
    """
    content = request.content
    derived = derived_inputs(content.inputs, request.input_values, _facts(request, transport, server_id, signal_inputs))
    inputs = mark_secrets(derived, tx.secrets.texts, request.secret)
    config = Config(
        id=str(uuid4()),
        project_id=project_id,
        name=request.name,
        group=content.group or UNGROUPED,
        config=_render(content, inputs),
        inputs=inputs,
        outputs=content.outputs,
        options=content.options,
        created_at=tx.now,
        is_owned=True,
    )
    return PlannedRun(
        config=config,
        action=request.action,
        input_values=request.input_values,
        transport=transport,
        timeout=request.timeout,
        requested_by=request.requested_by,
        mode=request.mode,
        checks=request.checks.over(CheckSettings.of(content.options)),
    )


def plan_rerun(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> PlannedRun:
    """
    Plan another run of the same config.

    The inputs are the same. A deployment without a resource gets new inputs for the signal, so that results of the
    earlier run cannot end the new one.
    """
    config = configs.get(tx, deployment.config_id, deployment.project_id)
    transport, timeout, inputs = None, None, config.inputs
    if deployment.signal_transport is not None:
        transport = env.transports.signal_transports[deployment.signal_transport]
        if deployment.resource_id is None:
            inputs = _with_new_signal(tx, env, deployment, config, transport)
        timeout = deadlines.seconds_of(inputs)
    return PlannedRun(
        config=replace(config, id=str(uuid4()), inputs=inputs, created_at=tx.now, is_owned=True),
        action=deployment.action,
        input_values=deployment.input_values,
        transport=transport,
        timeout=timeout,
        requested_by=requested_by,
        mode=deployment.mode,
    )


def plan_undo(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None, undo: Undo) -> PlannedRun:
    """Plan the run that undoes a deployment without a resource, with the inputs of the deployment's last run."""
    again = plan_rerun(tx, env, deployment, requested_by)
    facts = {_ACTION: Action.DELETE.value, TIMEOUT: str(undo.timeout)}
    inputs = [entry for entry in again.config.inputs if entry["name"] not in facts]
    config = replace(
        again.config,
        group=undo.content.group,
        config=undo.content.config,
        inputs=(*inputs, *derived_inputs((), {}, facts)),
    )
    return replace(again, config=config, action=Action.DELETE.value, mode=undo.mode, timeout=undo.timeout)


def _with_new_signal(
    tx: Tx, env: DeploymentEnv, deployment: Deployment, config: Config, transport: SignalTransport
) -> tuple[Mapping[str, Any], ...]:
    """Return the config's inputs, with those for the signal of the next run."""
    owner, last = Client(), stored.find(tx, deployment.id, deployment.config_id)
    target = owner.target(deployment.id, deployment.project_id, config.name, last.number + 1 if last else 2)
    signal_inputs = owner.signal_inputs(tx, env, transport, target)
    return tuple({**entry, "value": signal_inputs.get(entry["name"], entry.get("value"))} for entry in config.inputs)


def check_request(tx: Tx, env: DeploymentEnv, request: RunRequest, server_id: str) -> None:
    """
    Check the request of a client or trigger, without opening anything. Raises Invalid, UserParameterMissing.
    """
    owner = Client()
    transport = owner.transport(tx, env, request.signal_transport, server_id)
    facts = _facts(request, transport, server_id, owner.possible_inputs(transport))
    _render(request.content, derived_inputs(request.content.inputs, request.input_values, facts))


def _facts(
    request: RunRequest, transport: SignalTransport, server_id: str, signal_inputs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the ``deploy_*`` inputs of a run."""
    facts = {
        _SERVER: server_id,
        _ACTION: request.action,
        **request.content.facts,
        _TRANSPORT: transport.signal_name,
        **signal_inputs,
    }
    if transport.awaits_signal:
        facts[runs.STATUS_AWARE] = "true"
    if request.timeout is not None:
        facts[TIMEOUT] = str(request.timeout)
    return facts


def _render(content: Content, inputs: tuple[Mapping[str, Any], ...]) -> Any:
    """Return the config with the values of its inputs. Raises UserParameterMissing."""
    if content.input_key is None:
        return content.config
    values = {entry["name"]: entry["value"] for entry in inputs}
    return substitute(content.config or {}, values, key=content.input_key, strict=content.strict)
