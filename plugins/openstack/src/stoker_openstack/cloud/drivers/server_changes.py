"""Changes of existing servers: name, metadata, flavor, image, security groups, interfaces, tags and images of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker_openstack.cloud.drivers.base import Run, set_metadata
from stoker_openstack.cloud.drivers.server_request import (
    encode,
    has_floating_ips,
    has_own_ports,
    network_entries,
    nics,
    own_ports,
    security_groups,
)
from stoker_openstack.cloud.errors import CloudRefused, RetryLater
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CONSOLES

_DETACHING = "detaching"
#: Note: Nova confirms a resize. Note and key of ``observed``: the number of rebuilds for changed user data.
CONFIRMED, REBUILDS = "confirmed", "stoker:rebuilds"
#: Key of ``observed``: the ids of the floating IPs that the server's networks have.
FLOATING_IPS = "stoker:floating_ips"
#: The first microversion in which a rebuild changes the user data.
_REBUILD_VERSION = "2.57"


def apply_next(run: Run, observed: Mapping[str, Any]) -> bool:
    """Send the next requests that the server needs. Return whether Nova now changes the server."""
    if observed["name"] != run.name:
        run.noun.change(run.client, run.external_id, {"name": run.name})
    set_metadata(run, observed)
    if observed["status"] == "VERIFY_RESIZE":
        if not run.progress.get(CONFIRMED):
            run.send("POST", "/action", {"confirmResize": None})
            run.note(**{CONFIRMED: True})
        return True
    if _resize(run, observed) or _rebuild(run, observed):
        return True
    if network_entries(run.specification):
        _set_interfaces(run)
    _set_security_groups(run, observed)
    return False


def associate_floating_ips(run: Run) -> list[str]:
    """Associate the floating IPs of ``networks`` with the server's ports, and free former ones; return their ids."""
    former: Sequence[str] = run.object.observed.get(FLOATING_IPS) or ()
    if not former and not has_floating_ips(run.specification):
        return []
    interfaces, associated = _interfaces(run), []
    for entry, nic in zip(network_entries(run.specification), nics(run), strict=True):
        interface = next((item for item in interfaces if _is_of(nic, item)), None)
        if entry.get("floating_ip") and interface is not None:
            floating_ip = run.login.resolve("floating_ip", str(entry["floating_ip"]))
            NOUNS["floating_ip"].change(run.client, floating_ip, {"port_id": interface["port_id"]})
            associated.append(floating_ip)
    ports = {item["port_id"] for item in interfaces}
    for id in set(former) - set(associated):
        present = NOUNS["floating_ip"].find(run.client, id)
        if present is not None and present["port_id"] in ports:  # otherwise another object has it
            NOUNS["floating_ip"].change(run.client, id, {"port_id": None})
    return associated


def console_urls(run: Run, types: Sequence[str]) -> dict[str, str]:
    """Return the URLs of a server's consoles by type; for a type that Nova refuses, the reason."""
    urls = {}
    for kind in types:
        body = {"remote_console": {"protocol": CONSOLES[kind], "type": kind}}
        try:
            answer = run.send("POST", "/remote-consoles", body)
            urls[kind] = str(answer.json()["remote_console"]["url"])
        except CloudRefused as error:
            urls[kind] = str(error)
    return urls


def _resize(run: Run, observed: Mapping[str, Any]) -> bool:
    flavor = run.login.resolve("flavor", str(run.specification["flavorRef"]))
    if observed["flavor"]["id"] == flavor:
        return False
    run.send("POST", "/action", {"resize": {"flavorRef": flavor}})
    return True


def _rebuild(run: Run, observed: Mapping[str, Any]) -> bool:
    image = run.specification.get("imageRef")
    if not image or not observed.get("image"):
        return False
    image_id = run.login.resolve("image", str(image))
    rebuilds = int(run.specification.get(REBUILDS) or 0)
    is_due = rebuilds > int(run.progress.get(REBUILDS, run.object.observed.get(REBUILDS, 0)))
    if observed["image"]["id"] == image_id and not is_due:
        return False
    body: dict[str, Any] = {"imageRef": image_id}
    version = None
    if is_due and run.specification.get("user_data"):
        body["user_data"], version = encode(str(run.specification["user_data"])), _REBUILD_VERSION
    if run.specification.get("stoker:preserve_ephemeral"):
        body["preserve_ephemeral"] = True
    if run.specification.get("adminPass"):
        body["adminPass"] = run.specification["adminPass"]
    run.send("POST", "/action", {"rebuild": body}, microversion=version)
    run.note(**{REBUILDS: rebuilds})
    return True


def _set_security_groups(run: Run, observed: Mapping[str, Any]) -> None:
    """Change the groups of a server that has no ports of the user: Nova's groups apply to its own ports only."""
    groups = run.specification.get("security_groups")
    networks = run.specification.get("networks") or ()
    if not groups or isinstance(networks, str) or any(entry.get("port") for entry in networks):
        return
    wanted = {_group_name(run, id) for id in security_groups(run)}
    present = {group["name"] for group in observed.get("security_groups") or ()}
    for name in sorted(wanted - present):
        run.send("POST", "/action", {"addSecurityGroup": {"name": name}})
    for name in sorted(present - wanted):
        run.send("POST", "/action", {"removeSecurityGroup": {"name": name}})


def _group_name(run: Run, id: str) -> str:
    match = NOUNS["security_group"].find(run.client, id)
    return str(match["name"]) if match else id


def _set_interfaces(run: Run) -> None:
    """Detach and attach interfaces. Raises RetryLater while Nova detaches."""
    interfaces = _interfaces(run)
    detaching = [id for id in run.progress.get(_DETACHING) or () if any(item["port_id"] == id for item in interfaces)]
    if detaching:
        raise RetryLater("Waiting for Nova to detach interfaces", 1.0)
    left, missing = list(interfaces), []
    # An entry for any port of a network must not take the port of another entry.
    for nic in sorted(nics(run), key=lambda nic: (not nic.get("port"), not nic.get("fixed_ip"))):
        match = next((item for item in left if _is_of(nic, item)), None)
        if match is None:
            missing.append(nic)
        else:
            left.remove(match)
    if left:
        for item in left:
            run.send("DELETE", f"/os-interface/{item['port_id']}")
        run.note(**{_DETACHING: [item["port_id"] for item in left]})
        raise RetryLater("Waiting for Nova to detach interfaces", 1.0)
    for nic in missing:
        run.send("POST", "/os-interface", {"interfaceAttachment": _attachment(nic)})
    if missing:  # the representation that was read before does not have the new addresses
        raise RetryLater("Waiting for Nova to attach interfaces", 1.0)
    _delete_unused_ports(run)


def _delete_unused_ports(run: Run) -> None:
    if not run.progress.get(_DETACHING) and not has_own_ports(run.specification):
        return
    used = {nic.get("port") for nic in nics(run)}
    for port in own_ports(run):
        if port["id"] not in used:
            NOUNS["port"].discard(run.client, port["id"])


def _attachment(nic: Mapping[str, Any]) -> dict[str, Any]:
    if nic.get("port"):
        return {"port_id": nic["port"]}
    address = {"fixed_ips": [{"ip_address": nic["fixed_ip"]}]} if nic.get("fixed_ip") else {}
    return {"net_id": nic["uuid"], **address}


def _is_of(nic: Mapping[str, Any], interface: Mapping[str, Any]) -> bool:
    if nic.get("port"):
        return bool(interface["port_id"] == nic["port"])
    addresses = [item["ip_address"] for item in interface.get("fixed_ips") or ()]
    return bool(interface["net_id"] == nic["uuid"]) and nic.get("fixed_ip") in (None, *addresses)


def _interfaces(run: Run) -> list[dict[str, Any]]:
    interfaces: list[dict[str, Any]] = run.send("GET", "/os-interface").json()["interfaceAttachments"]
    return interfaces
