"""
Plans of runs: the derived config, with the inputs that tell the agent how to report, the order on one server, and undo.

The config's option ``undo`` requests a run that removes what a deployment made, before the deployment disappears: true
for hooks that can undo, or the text of a script that gets the same inputs. This run takes everything from the
deployment's own derived config, because the source config may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from msgspec import Struct, field
from msgspec.structs import replace

from stoker.deployments import run_end, runs
from stoker.deployments.configs import SCRIPT, read_undo, source_inputs
from stoker.deployments.derive import DEPLOY_PREFIX, TIMEOUT, derived_inputs, mark_secrets, substitute
from stoker.deployments.owners import (
    DeploymentEnv,
    client_signal_inputs,
    client_target,
    client_transport,
    possible_inputs,
)
from stoker.model.config import COMPONENT, UNGROUPED, Config, Content, depends_on
from stoker.model.deployment import UNDO, CheckSettings, Deployment
from stoker.model.errors import Invalid
from stoker.model.stack import Action
from stoker.store import configs, deployments, documents, rows, servers
from stoker.store.tx import Tx
from stoker.transports.base import SignalTransport, TransportTarget

_STACK, _RESOURCE = f"{DEPLOY_PREFIX}stack_id", f"{DEPLOY_PREFIX}resource_name"
#: Status reason of a deployment until its agent reports progress.
WAITING = "Waiting for the agent"


@dataclass(frozen=True, slots=True)
class _Run:
    """A run in a server's document. The agent's ``stoker_agent.dependencies`` has the same rule for names."""

    name: str | None
    depends_on: tuple[str, ...]
    stack: Any
    resource: Any

    @classmethod
    def of(cls, name: str | None, options: Mapping[str, Any], inputs: Iterable[Mapping[str, Any]]) -> _Run:
        values = {entry["name"]: entry.get("value") for entry in inputs if entry["name"] in (_STACK, _RESOURCE)}
        return cls(name, depends_on(options), values.get(_STACK), values.get(_RESOURCE))

    @property
    def label(self) -> str:
        """The name of the run for people."""
        return str(self.resource or self.name)

    def waits_for(self, other: _Run) -> bool:
        """Whether the other run has one of the names: its own, or that of its resource in the same stack."""
        is_in_stack = other.stack is not None and other.stack == self.stack
        return other.name in self.depends_on or (is_in_stack and other.resource in self.depends_on)


def list_pending(tx: Tx, config: Config, server_id: str, deployment_id: str) -> tuple[str, ...]:
    """
    Return the names of the server's pending runs, except for the deployment's own, for which a run of ``config`` waits.
    Raises Invalid if these also wait for the new one.
    """
    if not depends_on(config.options):
        return ()
    new = _Run.of(config.name, config.options, config.inputs)
    if new.waits_for(new):
        raise Invalid(f"The option depends_on of {config.name!r} names this deployment itself.")
    # only runs that apply a config are in an order
    runs = [run for run in documents.to_run(tx, server_id) if run.mode is None and run.deployment_id != deployment_id]
    bodies = [rows.load(run.body) for run in runs]
    pending = [_Run.of(body["name"], body["options"], body["inputs"]) for body in bodies]
    path = _find_path(new, new, pending, [])
    if path is not None:
        names = " → ".join(run.label for run in (new, *path))
        raise Invalid(f"The option depends_on forms a cycle on this server: {names}. Remove one of these dependencies.")
    return tuple(run.label for run in pending if new.waits_for(run))


def _find_path(start: _Run, target: _Run, pending: list[_Run], visited: list[_Run]) -> list[_Run] | None:
    """Return the runs from ``start`` to ``target``, along what each waits for, or None."""
    for run in pending:
        if run in visited or not start.waits_for(run):
            continue
        if run.waits_for(target):
            return [run, target]
        path = _find_path(run, target, pending, [*visited, run])
        if path is not None:
            return [run, *path]
    return None


_TRANSPORT, _SERVER, _ACTION = (f"{DEPLOY_PREFIX}{name}" for name in ("signal_transport", "server_id", "action"))


class RunRequest(Struct, frozen=True, kw_only=True):
    """A run to start: of what, on which server, for whom, and how its result returns."""

    content: Content
    action: str | None
    name: str | None
    project_id: str
    server_id: str
    #: The resource that the run belongs to, with the number of the run; None: the run of a client or a trigger.
    resource: TransportTarget | None = None
    trigger_id: str | None = None
    input_values: Mapping[str, Any] = field(default_factory=dict)
    #: The name of the transport of the result. A run without a resource may leave the choice open (None, AUTO).
    signal_transport: str | None
    #: The limit of the run in seconds.
    timeout: float | None = None
    #: Whether the timeout includes the time for which the run waits for its agent.
    limits_queue: bool = False
    #: Name of the requesting user; None: an action of a stack starts the run.
    requested_by: str | None = None
    #: PREVIEW or UNDO; None: the run applies the config.
    mode: str | None = None
    #: How the deployment is checked, in place of the config's options; None: as before.
    checks: CheckSettings | None = CheckSettings()
    #: Names of secret inputs, in addition to those that their declaration marks as secret.
    secret: tuple[str, ...] = ()


class PlannedRun(Struct, frozen=True, kw_only=True):
    """A run that can start: its derived config, and how its result returns."""

    request: RunRequest
    config: Config
    #: None: a client has created the config and decides how the result returns.
    transport: SignalTransport | None
    #: The remote end for the run's result; None: that of the previous run.
    target: TransportTarget | None

    @property
    def awaits_signal(self) -> bool:
        """Whether a signal ends the run. Otherwise the run has ended once it is in the server's document."""
        return self.transport is None or self.transport.awaits_signal

    def new_deployment(self, id: str) -> Deployment:
        """Return a deployment whose first run this is, before its start."""
        request, resource = self.request, self.request.resource
        return Deployment(
            id=id,
            project_id=request.project_id,
            server_id=request.server_id,
            config_id=self.config.id,
            action=request.action,
            status=None,
            status_reason=None,
            input_values={},
            output_values={},
            created_at=self.config.created_at,
            stack_id=resource.stack_id if resource else None,
            resource_id=resource.resource_id if resource else None,
            trigger_id=request.trigger_id,
        )


def plan_run(tx: Tx, env: DeploymentEnv, request: RunRequest, deployment_id: str) -> PlannedRun:
    """Plan the run of a request, the first one unless it is a resource's. Raises Invalid, UserParameterMissing."""
    content, target = request.content, request.resource
    if target is not None:  # the transport of a resource stays, even if new deployments may not use it
        transport = env.transports.signal_transports[request.signal_transport or ""]
        signal_inputs = transport.signal_inputs(tx, env.platform, target)
    else:
        transport = client_transport(tx, env, request.signal_transport, request.server_id)
        target = client_target(deployment_id, request.project_id, request.name, 1)
        signal_inputs = client_signal_inputs(tx, env, transport, target)
    derived = derived_inputs(content.inputs, request.input_values, _facts(request, transport, signal_inputs))
    inputs = mark_secrets(derived, tx.secrets.contain, request.secret)
    config = Config(
        id=str(uuid4()),
        project_id=request.project_id,
        name=request.name,
        group=content.group or UNGROUPED,
        config=_render(content, inputs),
        inputs=inputs,
        outputs=content.outputs,
        options=content.options,
        created_at=tx.now,
        is_owned=True,
    )
    return PlannedRun(request=request, config=config, transport=transport, target=target)


def plan_rerun(tx: Tx, env: DeploymentEnv, deployment: Deployment, requested_by: str | None) -> PlannedRun:
    """
    Plan another run of the same config and inputs, but for those of the signal of a deployment without a resource, so
    that results of the earlier run cannot end the new one.
    """
    config = configs.get(tx, deployment.config_id, deployment.project_id)
    transport, timeout, inputs, target = None, None, config.inputs, None
    if deployment.signal_transport is not None:
        transport = env.transports.signal_transports[deployment.signal_transport]
        if deployment.resource_id is None:
            target = client_target(deployment.id, deployment.project_id, config.name, deployment.run_number + 1)
            new = client_signal_inputs(tx, env, transport, target)
            inputs = tuple({**entry, "value": new.get(entry["name"], entry.get("value"))} for entry in inputs)
        timeout = run_end.seconds_of(inputs)
    request = RunRequest(
        content=Content.of(config),
        action=deployment.action,
        name=config.name,
        project_id=deployment.project_id,
        server_id=deployment.server_id,
        input_values=deployment.input_values,
        signal_transport=deployment.signal_transport,
        timeout=timeout,
        requested_by=requested_by,
        limits_queue=undoes(config, deployment.mode),
        mode=deployment.mode,
        checks=None,
    )
    again = replace(config, id=str(uuid4()), inputs=inputs, created_at=tx.now, is_owned=True)
    return PlannedRun(request=request, config=again, transport=transport, target=target)


def check_request(tx: Tx, env: DeploymentEnv, request: RunRequest) -> None:
    """Check the request of a client or trigger without opening anything. Raises Invalid, UserParameterMissing."""
    transport = client_transport(tx, env, request.signal_transport, request.server_id)
    facts = _facts(request, transport, possible_inputs(transport))
    _render(request.content, derived_inputs(request.content.inputs, request.input_values, facts))


def _facts(request: RunRequest, transport: SignalTransport, signal_inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the ``deploy_*`` inputs of a run."""
    facts = {
        _SERVER: request.server_id,
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


#: The option of a config with the limit of the run that undoes, in seconds.
TIMEOUT_OPTION = "undo_timeout"
#: The limit of a run that undoes, if neither the config nor the deployment has one. A server that is lost must not
#: block a deletion for ever.
_DEFAULT_SECONDS = 600.0
#: What to do about an undo that fails.
REMEDY = (
    "delete again to retry; to give up, remove the deployment (`stoker deployment delete --force`) or abandon the stack"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """What undoes a deployment."""

    content: Content
    input_values: Mapping[str, Any]
    #: UNDO, or None for a script of its own, which any agent can run.
    mode: str | None
    timeout: float


def find_undo(tx: Tx, deployment: Deployment, timeout: float | None = None) -> Undo | None:
    """
    Return what undoes the deployment within its own ``timeout``, or None if nothing does or no run may have begun.
    Raises Invalid if the server's agent cannot undo.
    """
    config = configs.find(tx, deployment.config_id)
    server = servers.find(tx, deployment.server_id)
    option = _option(config) if config is not None and deployment.signal_transport != "NO_SIGNAL" else None
    if (
        config is None
        or server is None
        or option is None
        or not deployments.may_have_begun(tx, deployment.id, any_run=True)
    ):
        return None
    if option is True and UNDO not in server.modes:
        raise Invalid(
            f"The agent of server {server.name} does not know how to undo: upgrade it, or use the action DELETE"
        )
    inputs, values = source_inputs(config.inputs)
    content = replace(Content.of(config), inputs=inputs)
    if option is not True:
        content = replace(content, group=SCRIPT, config=option)
    seconds = run_end.read_seconds(config.options.get(TIMEOUT_OPTION)) or timeout or _DEFAULT_SECONDS
    return Undo(content=content, input_values=values, mode=UNDO if option is True else None, timeout=seconds)


def requests_undo(content: Content) -> bool:
    """Return whether a deployment of the content is undone at its removal."""
    return content.group != COMPONENT and read_undo(content.options) is not None


def undoes(config: Config, mode: str | None) -> bool:
    """Return whether a run of a derived config, in this mode, is an undo."""
    option = _option(config)
    return mode == UNDO or (isinstance(option, str) and option == config.config)


def describe_failure(tx: Tx, deployment: Deployment) -> str:
    """Return why a deletion has failed: the reason of the deployment, with the remedy if its run was an undo."""
    reason = deployment.status_reason or ""
    config = configs.find(tx, deployment.config_id)
    return reason if config is None or _option(config) is None else f"{reason}: {REMEDY}"


def _option(config: Config) -> str | bool | None:
    """Return True, the text of a script, or None: a component has configs for DELETE instead."""
    return None if config.group == COMPONENT else read_undo(config.options)


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
    action = Action.DELETE.value
    request = replace(again.request, action=action, mode=undo.mode, timeout=undo.timeout, limits_queue=True)
    return replace(again, request=request, config=config)
