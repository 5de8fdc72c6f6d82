"""Networks, subnets, ports, routers, floating IPs, and security groups with their rules: the objects of Neutron."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK, suppressing
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, differences, is_same, set_tags
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.markers import Marker
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudKind

#: The members of each kind that cannot be changed, besides the project.
_FIXED: Mapping[CloudKind, tuple[str, ...]] = {
    CloudKind.SUBNET: (
        "network_id",
        "ip_version",
        "cidr",
        "subnetpool_id",
        "prefixlen",
        "ipv6_ra_mode",
        "ipv6_address_mode",
    ),
    CloudKind.PORT: ("network_id",),
    CloudKind.ROUTER: ("ha",),
    CloudKind.FLOATING_IP: ("floating_network_id", "subnet_id", "floating_ip_address", "dns_name", "dns_domain"),
}
_PROJECT = ("tenant_id", "project_id")


class NeutronDriver(Driver):
    """The driver of networks, subnets, ports, routers, floating IPs or security groups."""

    broken, changing = ("ERROR",), ("BUILD", "PENDING_CREATE", "PENDING_UPDATE")

    def __init__(self, kind: CloudKind) -> None:
        self.kind = kind
        self.noun = NOUNS[kind]
        self._fixed = (*_FIXED.get(kind, ()), *_PROJECT)

    def body(self, run: Run) -> dict[str, Any]:
        # The description of the user follows when the object has its tag.
        return {**_desired_members(run), "description": run.marker.text}

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        tags = _desired_tags(run)
        set_tags(run, observed, tags)
        observed = {**observed, "tags": tags}
        members = {name: value for name, value in _desired_members(run).items() if name not in self._fixed}
        if changes := differences(members, observed):
            observed = self.noun.change(run.client, run.external_id, changes)
        _assign_agents(run)
        return self.check(run, observed)


def _desired_members(run: Run) -> dict[str, Any]:
    """Return the members of the object, without its tags. The marker is its description, unless the user sets one."""
    body = run.login.resolve_body(run.specification)
    body.pop("tags", None)
    return {**body, "description": body.get("description") or run.marker.text}


def _desired_tags(run: Run) -> list[str]:
    """Return the user's tags, and the marker if the description is the user's own."""
    tags = [str(tag) for tag in run.specification.get("tags") or ()]
    return [*tags, run.marker.text] if run.specification.get("description") else tags


#: The agents of objects of each kind that has some, as in ``dhcp-agents`` and in ``/agents/<id>/dhcp-networks``.
_AGENTS = {CloudKind.NETWORK: "dhcp", CloudKind.ROUTER: "l3"}


def _assign_agents(run: Run) -> None:
    """
    Assign the object to exactly the agents of the specification, if it names any.

    Neutron permits this to administrators only. Raises CloudFailure with the property for other users.
    """
    kind, agents = run.object.kind, _AGENTS.get(run.object.kind)
    name, path = f"{agents}_agent_ids", f"{agents}-{kind}s"
    desired = run.specification.get(f"stoker:{name}")
    if desired is None:
        return
    try:
        listed = run.send("GET", f"/{agents}-agents").json()["agents"]
        present = {str(agent["id"]) for agent in listed}
        # Neutron refuses a second agent for most routers, so the first one goes before.
        for agent in sorted(present - set(desired)):
            with suppressing(409, 404):
                run.client.request(NETWORK, "DELETE", f"/agents/{agent}/{path}/{run.external_id}")
        for agent in (agent for agent in desired if agent not in present):
            with suppressing(409):
                run.client.request(NETWORK, "POST", f"/agents/{agent}/{path}", {f"{kind}_id": run.external_id})
    except CloudRefused as error:
        if error.status in (403, 404):
            text = f"Property {name} needs existing agents, and the role of an administrator at the cloud"
            raise CloudFailure(f"{text}: {error}", error.kind) from None
        raise


_OTHERS = "stoker:takes_over_from"


class PortDriver(NeutronDriver):
    """The driver of ports."""

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        # The port that this one replaces is just being created.
        is_taking_over = run.specification.get(_OTHERS) and run.object.external_id is not None
        return super().may_pass(run, error) or bool(error.status == 409 and is_taking_over)

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        self._take_addresses(run)
        return super().request(run)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        self._take_addresses(run)
        return super().update(run, observed)

    def _take_addresses(self, run: Run) -> None:
        """Take the addresses from the ports that this one replaces: Neutron assigns an address once."""
        for id in run.specification.get(_OTHERS) or ():
            other = self.noun.find_marked(run.client, Marker(run.marker.site, str(id)), "")
            if other is not None and other.get("fixed_ips"):
                with suppressing(404):
                    self.noun.change(run.client, other["id"], {"fixed_ips": []})


_RULE, _RULES_KEY, _SELF = NOUNS["security_group_rule"], "stoker:rules", "_self"
#: Members that distinguish the rules of a group.
_MEMBERS = (
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
    "remote_group_id",
)
#: The rules that Neutron adds to every new group.
_DEFAULTS = tuple({"direction": "egress", "ethertype": version} for version in ("IPv4", "IPv6"))


class SecurityGroupDriver(NeutronDriver):
    """The driver of security groups; its rules follow the group."""

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        result = super().update(run, observed)
        if _RULES_KEY not in run.specification:
            return result
        return Done({**(result.observed or observed), "security_group_rules": _set_rules(run, observed)})


class SecurityGroupRuleDriver(Driver):
    """The driver of single rules, which cannot be changed."""

    kind, noun = CloudKind.SECURITY_GROUP_RULE, _RULE

    def body(self, run: Run) -> dict[str, Any]:
        return _desired_members(run)


def _set_rules(run: Run, group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Add and remove rules; return the rules of the group."""
    desired = [_desired_rule(run, rule) for rule in run.specification[_RULES_KEY]]
    if not any(rule["direction"] == "egress" for rule in desired):
        desired += [dict(rule) for rule in _DEFAULTS]
    missing, rules = list(desired), []
    for rule in group.get("security_group_rules") or ():
        match = next((other for other in missing if _is_rule(other, rule)), None)
        if match is None:
            _RULE.discard(run.client, rule["id"])
        else:
            missing.remove(match)
            rules.append(rule)
    for rule in missing:
        rules.append(_RULE.create(run.client, {**rule, "security_group_id": run.external_id}))
    return rules


def _desired_rule(run: Run, rule: Mapping[str, Any]) -> dict[str, Any]:
    body = {key: value for key, value in rule.items() if value is not None}
    if body.get("remote_group_id") == _SELF:
        body["remote_group_id"] = run.external_id
    return {"direction": "ingress", "ethertype": "IPv4", **run.login.resolve_body(body)}


def _is_rule(desired: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    return all(is_same(desired.get(name), rule.get(name)) for name in _MEMBERS)
