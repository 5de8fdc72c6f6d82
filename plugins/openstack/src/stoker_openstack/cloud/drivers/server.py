"""Servers of Nova."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from stoker_openstack.cloud.client import CloudClient
from stoker_openstack.cloud.drivers import server_changes
from stoker_openstack.cloud.drivers.base import (
    STILL_WAITING,
    STORED,
    Done,
    Driver,
    Result,
    Run,
    Wait,
    await_stable,
    set_tags,
)
from stoker_openstack.cloud.drivers.server_changes import FLOATING_IPS, REBUILDS
from stoker_openstack.cloud.drivers.server_request import (
    ADOPTED_PORTS,
    adopted_ports,
    create_body,
    delete_own_ports,
    has_floating_ips,
    microversion,
)
from stoker_openstack.cloud.drivers.snapshots import SERVER_IMAGES
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import PORT_MEMBERS, PORTS, CloudAction, CloudKind, CloudObject

_NOUN = NOUNS["server"]
_LIST = _NOUN.key
#: Limit of the servers whose ports one list call finds: the ids are in the URL.
_SERVERS_IN_QUERY = 100
#: Notes: the server is as its create request specified; an action was requested.
CREATED, REQUESTED = "created", "requested"
#: Notes: how often the deletion of the server was requested, and when it was last.
_DELETIONS, _DELETE_SENT = "deletions", "delete_sent"
#: How often a deletion is requested that Nova cannot carry out, for example without Neutron, and the pause between.
_MOST_DELETIONS, _DELETE_PAUSE = 18, timedelta(seconds=10)
#: States that pass, as in Heat's ``deferred_server_statuses``.
_TRANSIENT = frozenset(
    {"BUILD", "HARD_REBOOT", "PASSWORD", "REBOOT", "RESCUE", "RESIZE", "REVERT_RESIZE", "REBUILD", "MIGRATING"}
) | {"UNKNOWN"}  # Nova does not know the state while it cannot reach the host
#: The request of each action and the state that it leads to.
_POWER = {CloudAction.SUSPEND: ("suspend", "SUSPENDED"), CloudAction.RESUME: ("resume", "ACTIVE")}


class ServerDriver(Driver):
    """The driver of servers."""

    kind, noun, snapshots = CloudKind.SERVER, _NOUN, SERVER_IMAGES
    confidential = ("adminPass", "OS-EXT-SRV-ATTR:user_data")  # both may contain passwords

    def adopt(self, run: Run) -> Result:
        result = super().adopt(run)
        if not isinstance(result, Done) or result.observed is None:
            return result
        ports = adopted_ports(run, result.observed[PORTS])
        return Done({**result.observed, **({ADOPTED_PORTS: ports} if ports else {})})

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        return error.status == 409 and run.object.external_id is not None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        server, hints = create_body(run)
        run.note(**{CREATED: True})
        created = self.noun.create(run.client, server, beside=hints, microversion=microversion(server))
        return str(created["id"]), {**created, "status": "BUILD"}

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        if observed["status"] == "ERROR" and run.object.observed_generation == 0 and not run.progress.get(CREATED):
            self.noun.delete(run.client, run.external_id)  # the next call creates another server
            return Wait(_LIST, "Deleting the server of the failed attempt")
        if wait := await_stable(self, observed):
            return wait
        if not run.progress.get(CREATED):
            if server_changes.apply_next(run, observed):
                return Wait(_LIST, observed=observed)
            observed = self.read(run) or observed
        return Done(_complete(run, observed))

    def delete(self, run: Run) -> Wait:
        if run.object.arguments.get("snapshot"):
            run.note(**{REQUESTED: True})
        self.noun.delete(run.client, run.external_id)
        earlier = int(run.progress.get(_DELETIONS, 0))
        run.note(**{_DELETIONS: earlier + 1, _DELETE_SENT: run.now().isoformat()})
        return Wait(_LIST, "Nova could not delete the server; the deletion was requested again" if earlier else "")

    def remove(self, run: Run) -> Result:
        result = super().remove(run)
        # The newest specification does not say whether there are ports of the server's own: an update that drops their
        # entries may have been superseded.
        if isinstance(result, Done):
            delete_own_ports(run)
        return result

    def check(self, run: Run, observed: Mapping[str, Any]) -> Result:
        result = super().check(run, observed)
        return Done(_complete(run, observed)) if isinstance(result, Done) else result

    def carry_out(self, run: Run, observed: Mapping[str, Any], action: CloudAction) -> Result:
        if action not in _POWER:
            return super().carry_out(run, observed, action)
        if wait := await_stable(self, observed):
            return wait
        request, state = _POWER[action]
        if observed["status"] == state or (request == "suspend" and observed["status"] == "SHUTOFF"):
            return Done(observed)
        if run.progress.get(REQUESTED):
            raise CloudFailure(f"{request.capitalize()} of server {run.object.name} failed.", "ResourceUnknownStatus")
        run.send("POST", "/action", {request: None})
        run.note(**{REQUESTED: True})
        return Wait(_LIST, observed=observed)

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        is_broken = observed["status"] == "ERROR" and observed.get("OS-EXT-STS:task_state") != "deleting"
        return _fault_of(observed) if is_broken else None

    def is_changing(self, observed: Mapping[str, Any]) -> bool:
        return observed["status"] in _TRANSIENT or observed.get("OS-EXT-STS:task_state") is not None

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        wait = super().judge(item, observed, now)
        if item.action is not CloudAction.ENSURE or observed is None or wait is not None:
            return wait
        if observed["status"] == "VERIFY_RESIZE" and item.progress.get(server_changes.CONFIRMED):
            return STILL_WAITING
        if item.progress.get(CREATED) and not _has_extras(item.specification):
            rebuilds = {REBUILDS: item.specification[REBUILDS]} if REBUILDS in item.specification else {}
            return Done({**item.observed, **observed, **rebuilds})
        return None

    def judge_deletion(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        """A deletion that Nova could not carry out is requested again. Raises CloudFailure after many attempts."""
        if observed is None or observed["status"] in ("DELETED", "SOFT_DELETED"):
            return None
        if observed["status"] != "ERROR" or self.is_changing(observed):
            is_stored = item.progress.get(STORED) and not item.progress.get(REQUESTED)
            return None if is_stored else STILL_WAITING
        if int(item.progress.get(_DELETIONS, 0)) >= _MOST_DELETIONS:
            raise CloudFailure(f"Server {item.name} delete failed: {_fault_of(observed)}", "ResourceInError")
        sent = item.progress.get(_DELETE_SENT)
        is_recent = sent and now - datetime.fromisoformat(sent) < _DELETE_PAUSE
        return STILL_WAITING if is_recent else None


def _complete(run: Run, observed: Mapping[str, Any]) -> Mapping[str, Any]:
    """Apply what follows the start of a server; return its representation with Stoker's own keys."""
    if (tags := run.specification.get("tags")) is not None:
        set_tags(run, observed, [str(tag) for tag in tags])
    floating_ips = server_changes.associate_floating_ips(run)
    extras = list_ports(run.client, [run.external_id])[run.external_id]
    if floating_ips or FLOATING_IPS in run.object.observed:
        extras[FLOATING_IPS] = floating_ips
    types = run.specification.get("stoker:console_types") or ()
    if types:
        extras["stoker:consoles"] = server_changes.console_urls(run, types)
    if run.specification.get(REBUILDS):
        extras[REBUILDS] = run.specification[REBUILDS]
    return {**run.object.observed, **observed, **extras}


def _fault_of(server: Mapping[str, Any]) -> str:
    """Return the fault of a server in Heat's form."""
    fault = server.get("fault") or {}
    return f'"Message: {fault.get("message", "Unknown")}, Code: {fault.get("code", "Unknown")}"'


def _has_extras(specification: Mapping[str, Any]) -> bool:
    """Return whether requests follow the start of a server."""
    return has_floating_ips(specification) or any(specification.get(key) for key in ("tags", "stoker:console_types"))


def list_ports(client: CloudClient, servers: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return by the id of each server Stoker's own key of its representation: its ports."""
    ports: dict[str, dict[str, Any]] = {id: {PORTS: {}} for id in servers}
    for start in range(0, len(servers), _SERVERS_IN_QUERY):
        query = [("device_id", id) for id in servers[start : start + _SERVERS_IN_QUERY]]
        for port in NOUNS["port"].list(client, query):
            if port["device_id"] in ports:
                summary = {key: port.get(key) for key in PORT_MEMBERS}
                ports[port["device_id"]][PORTS][port["id"]] = summary
    return ports
