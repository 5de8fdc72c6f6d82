"""Neutron's agents that serve a network's DHCP or route a router's traffic, if the template selects them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stoker_openstack.cloud.client import NETWORK, suppressing
from stoker_openstack.cloud.drivers.base import Run
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.model import CloudKind


@dataclass(frozen=True, slots=True)
class _Assignment:
    #: The key of the specification is ``stoker:`` and the name of the property.
    name: str
    list_path: str
    agent_path: str
    id_key: str


_ASSIGNMENTS: Mapping[CloudKind, _Assignment] = {
    CloudKind.NETWORK: _Assignment("dhcp_agent_ids", "/networks/{id}/dhcp-agents", "dhcp-networks", "network_id"),
    CloudKind.ROUTER: _Assignment("l3_agent_ids", "/routers/{id}/l3-agents", "l3-routers", "router_id"),
}
_FORBIDDEN, _NOT_FOUND, _CONFLICT = 403, 404, 409


def assign_agents(run: Run) -> None:
    """
    Assign the object to exactly the agents of the specification, if it names any.

    Neutron permits this to administrators only. Raises CloudFailure with the property for other users.
    """
    assignment = _ASSIGNMENTS.get(run.object.kind)
    desired = run.specification.get(f"stoker:{assignment.name}") if assignment is not None else None
    if assignment is None or desired is None:
        return
    try:
        body = run.client.get(NETWORK, assignment.list_path.format(id=run.external_id))
        present = {str(agent["id"]) for agent in body["agents"]}
        # Neutron refuses a second agent for most routers, so the first one goes before.
        for agent in sorted(present - set(desired)):
            with suppressing(_CONFLICT, _NOT_FOUND):
                run.client.request(NETWORK, "DELETE", f"/agents/{agent}/{assignment.agent_path}/{run.external_id}")
        for agent in (agent for agent in desired if agent not in present):
            with suppressing(_CONFLICT):
                path = f"/agents/{agent}/{assignment.agent_path}"
                run.client.request(NETWORK, "POST", path, {assignment.id_key: run.external_id})
    except CloudRefused as error:
        if error.status in (_FORBIDDEN, _NOT_FOUND):
            text = f"Property {assignment.name} needs existing agents, and the role of an administrator at the cloud"
            raise CloudFailure(f"{text}: {error}", error.kind) from None
        raise
