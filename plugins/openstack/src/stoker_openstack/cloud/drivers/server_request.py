"""The body of the request that creates a server, with the ports that belong to the server alone."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from stoker_openstack.cloud.client import MICROVERSION, NETWORK
from stoker_openstack.cloud.drivers.base import Run, members_of
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.markers import marker_of
from stoker_openstack.cloud.nouns import NOUNS

#: Microversions for the requests that need another one: without networks, with personality, with types of volumes.
_WITHOUT_NETWORKS, _VOLUME_TYPES = "2.36", "2.67"
_HINTS = "os:scheduler_hints"
#: Key of ``observed``: the ids of the ports that another Heat created for a server alone, before its adoption.
ADOPTED_PORTS = "stoker:adopted_ports"
_PORT = NOUNS["port"]
#: Members of an entry of ``networks`` for the driver.
_OWN_MEMBERS = ("subnet", "port_extra_properties", "floating_ip")


def microversion(server: Mapping[str, Any]) -> str:
    """Return the microversion for the body of a create request."""
    if any("volume_type" in device for device in server.get("block_device_mapping_v2") or ()):
        return _VOLUME_TYPES
    return MICROVERSION if server.get("networks") else _WITHOUT_NETWORKS


def create_body(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """
    Return the server with ids in place of names, and the hints beside it. Creates the server's own ports.

    Raises CloudFailure.
    """
    server = members_of(run.specification)
    server.pop("tags", None)
    hints = {_HINTS: server.pop(_HINTS)} if _HINTS in server else {}
    if server.get("imageRef"):
        server["imageRef"] = run.login.resolve("image", str(server["imageRef"]))
    server["flavorRef"] = run.login.resolve("flavor", str(server.get("flavorRef") or ""))
    if server.get("block_device_mapping_v2"):
        server["block_device_mapping_v2"] = [_device(run, item) for item in server["block_device_mapping_v2"]]
    if server.get("user_data"):
        server["user_data"] = encode(str(server["user_data"]))
    if network_entries(server):
        server["networks"] = nics(run)
    if server.get("security_groups"):
        server["security_groups"] = [{"name": group} for group in security_groups(run)]
    if server.get("personality"):
        server["personality"] = [{**file, "contents": encode(str(file["contents"]))} for file in server["personality"]]
    server["metadata"] = {**dict(server.get("metadata") or {}), **run.marker.metadata}
    return server, hints


def encode(user_data: str) -> str:
    """Return user data in base64, which Nova expects; data in base64 is unchanged."""
    try:
        decoded = base64.b64decode(user_data, validate=True)
    except (binascii.Error, ValueError):
        return base64.b64encode(user_data.encode()).decode()
    is_encoded = base64.b64encode(decoded).decode() == user_data and len(user_data) > 8
    return user_data if is_encoded else base64.b64encode(user_data.encode()).decode()


def security_groups(run: Run) -> list[str]:
    """Return the ids of the server's security groups."""
    groups = run.specification.get("security_groups") or ()
    return [run.login.resolve("security_group", group["name"]) for group in groups]


def network_entries(specification: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the entries of ``networks``; none if Nova chooses the networks, or adds none."""
    networks = specification.get("networks") or ()
    return () if isinstance(networks, str) else networks


def has_floating_ips(specification: Mapping[str, Any]) -> bool:
    """Return whether entries of ``networks`` have floating IPs, which are associated after the server's start."""
    return any(entry.get("floating_ip") for entry in network_entries(specification))


def nics(run: Run) -> list[dict[str, Any]]:
    """
    Return the server's networks in the form of the create request.

    An entry that needs a port gets one that the server has already, if it suits; otherwise a new one.
    """
    entries, named = network_entries(run.specification), _named_ports(run)
    present = _present_ports(run) if any(map(needs_own_port, entries)) else []
    left = [port for port in present if port["id"] not in named]
    return [_nic(run, index, entry, left) for index, entry in enumerate(entries)]


def _named_ports(run: Run) -> set[str]:
    """Return the ids of the ports that the entries name."""
    entries = network_entries(run.specification)
    return {run.login.resolve("port", str(entry["port"])) for entry in entries if entry.get("port")}


def _nic(run: Run, index: int, entry: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one network of the request. ``ports``: those that no other entry has; loses the one of this entry."""
    nic = {key: value for key, value in entry.items() if key not in _OWN_MEMBERS and value is not None}
    if entry.get("port"):
        nic = {"port": run.login.resolve("port", str(entry["port"])), "tag": entry.get("tag")}
    elif needs_own_port(entry):
        nic = {"port": _ensure_own_port(run, index, entry, ports), "tag": entry.get("tag")}
    elif entry.get("uuid"):
        nic["uuid"] = run.login.resolve("network", str(entry["uuid"]))
    return {key: value for key, value in nic.items() if value is not None}


def needs_own_port(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry of ``networks`` needs a port of the server's own."""
    return not entry.get("port") and bool(entry.get("subnet") or entry.get("port_extra_properties"))


def own_ports(run: Run) -> list[Mapping[str, Any]]:
    """Return the ports that belong to the server alone."""
    ports = _PORT.list(run.client, {"description": run.marker.text})
    adopted = [("id", id) for id in run.object.observed.get(ADOPTED_PORTS) or ()]
    if adopted:
        ports += _PORT.list(run.client, adopted)
    return [port for port in ports if _is_own(run, port)]


def adopted_ports(run: Run, attached: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """
    Return the ids of the ports that another Heat created for the server alone. ``attached``: its ports by id.

    Heat names such a port by the index of its entry. Nova's own ports, which Nova deletes, have no name. A user may
    have attached a port with such a name, and the result is deleted with the server: of several ports, only the one at
    the place of the entry counts, and none if that is not clear.
    """
    networks = network_entries(run.specification)
    if not has_own_ports(run.specification):
        return []
    named = _named_ports(run)
    others = [port for id, port in attached.items() if id not in named]
    adopted: list[str] = []
    for index, entry in enumerate(networks):
        if needs_own_port(entry):
            matches = [port for port in others if str(port["name"]).endswith(f"-port-{index}")]
            if len(matches) > 1:
                matches = [port for port in matches if _is_at(run, port, entry)]
            adopted += [str(port["id"]) for port in matches] if len(matches) == 1 else []
    return adopted


def _is_own(run: Run, port: Mapping[str, Any]) -> bool:
    return marker_of(port) == run.marker or port["id"] in (run.object.observed.get(ADOPTED_PORTS) or ())


def _present_ports(run: Run) -> list[Mapping[str, Any]]:
    """Return the ports that belong to the server alone, followed by other ports of its interfaces."""
    own = own_ports(run)
    if run.object.external_id is None:
        return own
    attached = _PORT.list(run.client, {"device_id": run.external_id})
    return [*own, *(port for port in attached if all(port["id"] != other["id"] for other in own))]


def _ensure_own_port(run: Run, index: int, entry: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> str:
    """Return the id of a port for an entry: one of ``ports``, which loses it, or a new one."""
    name = f"{run.object.name}-port-{index}"  # as Heat names it
    suitable = [port for port in ports if _suits(run, port, entry)]
    match = next((port for port in suitable if port["name"] == name), suitable[0] if suitable else None)
    if match is not None:
        ports.remove(match)
        return str(match["id"])
    body: dict[str, Any] = {"name": name, "description": run.marker.text}
    address = {"subnet_id": entry.get("subnet"), "ip_address": entry.get("fixed_ip")}
    address = {key: value for key, value in address.items() if value}
    if address:
        body["fixed_ips"] = [address]
    body = run.login.resolve_body({**body, **(entry.get("port_extra_properties") or {})})
    body["network_id"] = _network_of(run, entry, body)
    if run.specification.get("security_groups"):
        body.setdefault("security_groups", security_groups(run))
    return str(_PORT.create(run.client, body)["id"])


def _suits(run: Run, port: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether a port can serve an entry."""
    return _is_at(run, port, entry) and (not entry.get("port_extra_properties") or _is_own(run, port))


def _is_at(run: Run, port: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether a port has the network, the subnet and the address of an entry."""
    if entry.get("uuid") and port["network_id"] != run.login.resolve("network", str(entry["uuid"])):
        return False
    subnet = run.login.resolve("subnet", str(entry["subnet"])) if entry.get("subnet") else None
    addresses = port.get("fixed_ips") or ()
    if not addresses:
        return subnet is None and not entry.get("fixed_ip")
    return any(
        subnet in (None, address["subnet_id"]) and entry.get("fixed_ip") in (None, "", address["ip_address"])
        for address in addresses
    )


def delete_own_ports(run: Run) -> None:
    """Delete the ports that belong to the server alone; a cloud without Neutron has none."""
    try:
        ports = own_ports(run)
    except CloudFailure as error:
        if error.kind == "EndpointNotFound":
            return
        raise
    for port in ports:
        _PORT.discard(run.client, port["id"])


def has_own_ports(specification: Mapping[str, Any]) -> bool:
    """Return whether a server has ports of its own."""
    return any(map(needs_own_port, network_entries(specification)))


def _network_of(run: Run, entry: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    if entry.get("uuid"):
        return run.login.resolve("network", str(entry["uuid"]))
    subnet = run.client.get(NETWORK, f"/subnets/{body['fixed_ips'][0]['subnet_id']}")["subnet"]
    return str(subnet["network_id"])


def _device(run: Run, device: Mapping[str, Any]) -> dict[str, Any]:
    resolved = {key: value for key, value in device.items() if value is not None}
    source = resolved.get("source_type")
    if source in ("image", "volume", "snapshot") and resolved.get("uuid"):
        resolved["uuid"] = run.login.resolve(str(source), str(resolved["uuid"]))
    return resolved
