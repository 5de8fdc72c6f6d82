"""
Deployments that no resource of a stack stands behind: REST clients make them, and triggers.

Where the result comes belongs to the deployment itself: its id stands where a resource's would, in the names of queues
and objects and in who may signal it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import uuid4

from stoker.deployments import deadlines, manage, runs
from stoker.deployments.derive import FACT, TIMEOUT, derived_inputs, marked, substitute
from stoker.deployments.gate import Gate
from stoker.identity.signal_tokens import SignalTokens
from stoker.model.config import UNGROUPED, Config
from stoker.model.deployment import Deployment
from stoker.model.errors import DeploymentRefused, Invalid
from stoker.model.server import Server
from stoker.model.trigger import Content
from stoker.store import configs, deployments, servers
from stoker.store import runs as stored
from stoker.store.tx import Tx
from stoker.transports import Transports
from stoker.transports.base import Lodging, Party, Signalling, Site
from stoker.transports.choosing import AUTO
from stoker.work import Work

#: In a result: the derived config that was run.
RUN = "deploy_config_id"
_TRANSPORT, _SERVER, _ACTION = (f"{FACT}{n}" for n in ("signal_transport", "server_id", "action"))
#: Their results come by the deployment's own URL: upstream's agents post there, and have no resource to signal.
_BY_URL = ("CFN_SIGNAL", "HEAT_SIGNAL")
_OWN, _URL = "STOKER_SIGNAL", "CFN_SIGNAL"
#: What transports tell besides, each some of it.
_TOLD = tuple(
    FACT + name
    for name in (
        *("signal_id", "signal_verb", "queue_id"),
        *("auth_url", "username", "user_id", "password", "project_id", "region_name"),
    )
)


class Using(Protocol):
    """What of the rest of Stoker these need; ``resources.services.Services`` has it."""

    @property
    def transports(self) -> Transports: ...

    @property
    def work(self) -> Work: ...

    @property
    def site(self) -> Site: ...

    @property
    def signal_tokens(self) -> SignalTokens: ...

    @property
    def gate(self) -> Gate: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    content: Content
    action: str
    name: str | None
    input_values: Mapping[str, Any] = field(default_factory=dict)
    signal_transport: str
    timeout: float | None = None
    asked_by: str | None = None
    #: Names of inputs that are secret besides those that say so.
    secret: tuple[str, ...] = ()


def content_of(config: Config) -> Content:
    """Of a config that anybody may derive from."""
    return Content(
        name=config.name,
        group=config.group or UNGROUPED,
        config=config.config,
        inputs=config.inputs,
        outputs=config.outputs,
        options=config.options,
        facts={},
    )


def transport_named(tx: Tx, using: Using, name: str | None, server_id: str) -> Signalling:
    """None and AUTO: what suits the server. Raises Invalid for what is no transport, or none without a resource."""
    known = using.transports
    if name not in (None, *known.signal_names):
        raise Invalid(f"signal_transport {name!r:.100} is none of {', '.join(known.signal_names)}")
    found = known.signalling[_suiting(servers.find(tx, server_id)) if name in (None, AUTO) else str(name)]
    if not using.site.keeps_users and getattr(found, "logs_in", False) and found.signal_name not in _BY_URL:
        raise Invalid(
            f"{found.signal_name} needs a user at Keystone, which only resources of stacks get: use CFN_SIGNAL"
        )
    return found


def _suiting(server: Server | None) -> str:
    """An agent of ours has its own channel; upstream's can post to a URL, whatever else there is."""
    return _OWN if server is not None and server.has_channel else _URL


def begin(
    tx: Tx, using: Using, wanted: Wanted, *, project_id: str, server_id: str, trigger_id: str | None = None
) -> Deployment:
    """Derive the config and bring it to the server. Raises Invalid, UserParameterMissing, DeploymentRefused."""
    id = str(uuid4())
    transport = transport_named(tx, using, wanted.signal_transport, server_id)
    party = _party(id, project_id, wanted.name, run=1)
    if isinstance(transport, Lodging):
        transport.open(tx, using.site, party)
    run = _run(tx, using, wanted, transport, party, server_id)
    try:
        made = manage.begin(
            tx,
            run,
            gate=using.gate,
            project_id=project_id,
            server_id=server_id,
            deployment_id=id,
            trigger_id=trigger_id,
        )
    except DeploymentRefused:
        if isinstance(transport, Lodging):
            transport.close(tx, using.site, party)
        raise
    if wanted.timeout is not None and transport.awaits_signal:
        deadlines.expect(tx, using.work, made, wanted.timeout)
    return made


def begin_again(tx: Tx, using: Using, deployment: Deployment, asked_by: str | None) -> Deployment:
    """Another run of what it ran, with nothing changed but where its result is told apart from the one before."""
    config = configs.get(tx, deployment.config_id, deployment.project_id)
    name = deployment.signal_transport
    if name is None:  # the config is a client's own, and stays
        again = replace(config, id=str(uuid4()), created_at=tx.now)
        return manage.rerun(tx, deployment, again, asked_by, gate=using.gate)
    transport = using.transports.signalling[name]
    last = stored.find(tx, deployment.id, deployment.config_id)
    party = _party(deployment.id, deployment.project_id, config.name, run=last.number + 1 if last else 2)
    fresh = _signal_inputs(tx, using, transport, party)
    inputs = tuple({**each, "value": fresh.get(each["name"], each.get("value"))} for each in config.inputs)
    run = manage.Run(
        action=deployment.action or "",
        name=config.name,
        group=config.group or UNGROUPED,
        config=config.config,
        inputs=inputs,
        outputs=config.outputs,
        options=config.options,
        input_values=deployment.input_values,
        asked_by=asked_by,
        signal_transport=name,
        awaits_signal=transport.awaits_signal,
    )
    begun = manage.begin_again(tx, deployment, run, gate=using.gate)
    if (seconds := deadlines.seconds_of(inputs)) is not None and transport.awaits_signal:
        deadlines.expect(tx, using.work, begun, seconds)
    return begun


def withdraw(tx: Tx, using: Using, deployment: Deployment) -> None:
    """Delete it with what was made for it: the config that was derived, and the place where its result comes."""
    deadlines.call_off(tx, using.work, deployment)
    manage.withdraw(tx, deployment)
    transport = using.transports.signalling.get(deployment.signal_transport or "")
    if isinstance(transport, Lodging):
        transport.close(tx, using.site, _party(deployment.id, deployment.project_id, None))
    if deployment.signal_transport is not None and not configs.in_use(tx, deployment.config_id):
        configs.delete(tx, deployment.config_id)


def url(using: Using, project_id: str, deployment_id: str, run: int) -> str:
    """Whoever has it may signal that run of that deployment, and nothing else."""
    token = using.signal_tokens.token(deployment_id)
    return (
        f"{using.site.public_url}/v1/{project_id}/software_deployments/{deployment_id}/signal?token={token}&run={run}"
    )


def source_inputs(
    inputs: tuple[Mapping[str, Any], ...],
) -> tuple[tuple[Mapping[str, Any], ...], dict[str, Any]]:
    """Of a derived config: what it declares, and the values it has, without what is of one deployment."""
    own = [each for each in inputs if not each["name"].startswith(FACT)]
    declared = tuple({name: part for name, part in each.items() if name != "value"} for each in own)
    return declared, {each["name"]: each["value"] for each in own if "value" in each}


def waits(tx: Tx, deployment_id: str) -> Deployment | None:
    """The deployment of that id, if no resource stands behind it."""
    found = deployments.find(tx, deployment_id)
    return found if found is not None and found.resource_id is None else None


def check(tx: Tx, using: Using, wanted: Wanted, server_id: str) -> None:
    """What can be told of ``begin`` beforehand: nothing is opened. Raises Invalid, UserParameterMissing."""
    transport = transport_named(tx, using, wanted.signal_transport, server_id)
    told = _TOLD if transport.signal_name in _BY_URL or isinstance(transport, Lodging) else ()
    facts = _facts(wanted, transport, server_id, dict.fromkeys(told, ""))
    _rendered(wanted.content, derived_inputs(wanted.content.inputs, wanted.input_values, facts))


def _facts(wanted: Wanted, transport: Signalling, server_id: str, told: Mapping[str, Any]) -> Mapping[str, Any]:
    """``told``: how the result comes back."""
    facts = {
        _SERVER: server_id,
        _ACTION: wanted.action,
        **wanted.content.facts,
        _TRANSPORT: transport.signal_name,
        **told,
    }
    if transport.awaits_signal:
        facts[runs.STATUS_AWARE] = "true"
    if wanted.timeout is not None:
        facts[TIMEOUT] = str(wanted.timeout)
    return facts


def _run(tx: Tx, using: Using, wanted: Wanted, transport: Signalling, party: Party, server_id: str) -> manage.Run:
    content = wanted.content
    facts = _facts(wanted, transport, server_id, _signal_inputs(tx, using, transport, party))
    inputs = marked(derived_inputs(content.inputs, wanted.input_values, facts), (), wanted.secret)
    return manage.Run(
        action=wanted.action,
        name=wanted.name,
        group=content.group,
        config=_rendered(content, inputs),
        inputs=inputs,
        outputs=content.outputs,
        options=content.options,
        input_values=wanted.input_values,
        asked_by=wanted.asked_by,
        signal_transport=transport.signal_name,
        awaits_signal=transport.awaits_signal,
    )


def _rendered(content: Content, inputs: tuple[Mapping[str, Any], ...]) -> Any:
    """Raises UserParameterMissing."""
    if content.input_key is None:
        return content.config
    values = {entry["name"]: entry["value"] for entry in inputs}
    return substitute(content.config or {}, values, key=content.input_key, strict=content.strict)


def _signal_inputs(tx: Tx, using: Using, transport: Signalling, party: Party) -> Mapping[str, Any]:
    if transport.signal_name in _BY_URL:
        where = url(using, party.project_id, party.resource_id, int(party.run))
        return {f"{FACT}signal_id": where, f"{FACT}signal_verb": "POST"}
    return transport.signal_inputs(tx, using.site, party)


def _party(id: str, project_id: str, name: str | None, run: int = 0) -> Party:
    return Party(
        resource_id=id,
        resource_name=id,
        name=name or id,
        stack_id=id,
        stack_name="deployment",
        project_id=project_id,
        run=str(run) if run else "",
    )
