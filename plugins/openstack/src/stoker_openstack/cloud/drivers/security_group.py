"""Security groups with their rules, and single rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, is_same
from stoker_openstack.cloud.drivers.network import NeutronDriver, find_marked
from stoker_openstack.cloud.drivers.references import resolve_body, resolve_references
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudKind

_RULES, _RULES_KEY, _SELF = "/security-group-rules", "stoker:rules", "_self"
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

    def __init__(self) -> None:
        super().__init__(CloudKind.SECURITY_GROUP)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        result = super().update(run, observed)
        if _RULES_KEY not in run.specification:
            return result
        return Done({**(result.observed or observed), "security_group_rules": _set_rules(run, observed)})


class SecurityGroupRuleDriver(Driver):
    """The driver of single rules, which cannot be changed."""

    kind, noun = CloudKind.SECURITY_GROUP_RULE, NOUNS["security_group_rule"]

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        return find_marked(self.noun, run, run.marker)

    def create(self, run: Run) -> Result:
        body = resolve_body(run)
        body["description"] = body.get("description") or run.marker.text
        created = _add_rule(run, body)
        run.record_created(str(created["id"]), created)
        return Done(created)


def _set_rules(run: Run, group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Add and remove rules; return the rules of the group."""
    desired = [_desired_rule(run, rule) for rule in run.specification[_RULES_KEY]]
    if not any(rule["direction"] == "egress" for rule in desired):
        desired += [dict(rule) for rule in _DEFAULTS]
    missing, rules = list(desired), []
    for rule in group.get("security_group_rules") or ():
        match = next((other for other in missing if _is_rule(other, rule)), None)
        if match is None:
            run.client.discard(NETWORK, f"{_RULES}/{rule['id']}")
        else:
            missing.remove(match)
            rules.append(rule)
    for rule in missing:
        rules.append(_add_rule(run, {**rule, "security_group_id": run.external_id}))
    return rules


def _desired_rule(run: Run, rule: Mapping[str, Any]) -> dict[str, Any]:
    body = {key: value for key, value in rule.items() if value is not None}
    if body.get("remote_group_id") == _SELF:
        body["remote_group_id"] = run.external_id
    return {"direction": "ingress", "ethertype": "IPv4", **resolve_references(run.names, body)}


def _is_rule(desired: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    return all(is_same(desired.get(name), rule.get(name)) for name in _MEMBERS)


def _add_rule(run: Run, body: Mapping[str, Any]) -> Mapping[str, Any]:
    answer = run.client.request(NETWORK, "POST", _RULES, {"security_group_rule": dict(body)})
    created: Mapping[str, Any] = answer.json()["security_group_rule"]
    return created
