"""Servers and key pairs of the cloud of one machine. ``servers.local`` runs the servers' processes."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stoker.model.cloud import CloudKind, CloudObject
from stoker.model.errors import Invalid
from stoker.servers.local_cloud import networks
from stoker.servers.local_cloud.project import PART_OF, PlainHandler, Project
from stoker.store import cloud_objects, rows

_ZONE = "nova"
#: Key of a server's representation for its ports by id, and what it lists of each.
_PORTS = "stoker:ports"
_PORT_MEMBERS = ("id", "name", "network_id", "mac_address", "fixed_ips", "status", "security_groups")


class Servers(PlainHandler):
    """Servers: their networks, and a representation as Nova's."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members, before = wanted.specification, wanted.observed
        ports = list(_ports(project, wanted))
        _release(project, wanted, keep={port.id for port in ports})
        now = rows.heat_time(project.tx.now)
        return {
            "id": wanted.external_id,
            "name": wanted.name,
            "status": before.get("status", "ACTIVE"),
            "tenant_id": project.id,
            "created": before.get("created", now),
            "updated": now,
            "metadata": members.get("metadata", {}),
            "tags": members.get("tags", []),
            "key_name": members.get("key_name"),
            "flavor": {"original_name": members.get("flavorRef", "")},
            "image": {"id": project.resolve(CloudKind.IMAGE, members["imageRef"])} if "imageRef" in members else "",
            "config_drive": "True" if members.get("config_drive") else "",
            "security_groups": members.get("security_groups", [{"name": "default"}]),
            "accessIPv4": "",
            "accessIPv6": "",
            "OS-DCF:diskConfig": members.get("OS-DCF:diskConfig", "MANUAL"),
            "OS-EXT-AZ:availability_zone": members.get("availability_zone", _ZONE),
            "OS-EXT-SRV-ATTR:instance_name": f"instance-{wanted.id[:8]}",
            "os-extended-volumes:volumes_attached": before.get("os-extended-volumes:volumes_attached", []),
            "stoker:rebuilds": members.get("stoker:rebuilds", 0),
            **_addresses(project, ports, ()),
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        _release(project, gone, keep=frozenset())


class KeyPairs:
    """Key pairs, each with a unique name. Servers do not use them."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        key = wanted.specification["public_key"]
        return {
            "name": wanted.name,
            "type": wanted.specification.get("type", "ssh"),
            "public_key": key,
            "fingerprint": _fingerprint(key) if wanted.specification.get("type") != "x509" else "",
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        """Do nothing: nothing depends on a key pair."""

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        other = project.find(CloudKind.KEYPAIR, wanted.name)
        if other is not None and other.id != wanted.id:
            raise Invalid(f"Key pair '{wanted.name}' already exists.")
        return wanted.name


def refresh_addresses(project: Project, server: CloudObject, *, unsaved: Mapping[str, Mapping[str, Any]]) -> None:
    """Update a server's addresses. ``unsaved``: representations of floating IPs that are not yet stored, by id."""
    stored = cloud_objects.of_kind(project.tx, project.id, CloudKind.FLOATING_IP)
    floating_ips = [item.observed for item in stored if item.id not in unsaved]
    project.save(server, **_addresses(project, _stored_ports(project, server), [*floating_ips, *unsaved.values()]))


def _ports(project: Project, server: CloudObject) -> Iterator[CloudObject]:
    """Yield the server's ports, each connected to the server. Creates those that exist only for the server."""
    seen: Counter[str] = Counter()
    for entry in _entries(server.specification.get("networks", "auto")):
        if entry.get("port"):
            port = project.find(CloudKind.PORT, entry["port"])
            if port is None:
                raise Invalid(f"Port {entry['port']} could not be found.")
        else:
            text = json.dumps(entry, sort_keys=True)
            seen[text] += 1
            port = networks.ensure_part(project, server, f"port {text} {seen[text]}", _port_body(server, entry))
        yield project.save(port, device_id=server.external_id, device_owner=f"compute:{_ZONE}", status="ACTIVE")


def _entries(wanted: Any) -> Sequence[Mapping[str, Any]]:
    if wanted == "none":
        return ()
    return [{"uuid": networks.DEFAULT_NETWORK}] if wanted == "auto" or not wanted else list(wanted)


def _port_body(server: CloudObject, entry: Mapping[str, Any]) -> dict[str, Any]:
    groups = [group["name"] for group in server.specification.get("security_groups", ())]
    body = {
        "name": "",
        "network_id": entry.get("uuid") or networks.DEFAULT_NETWORK,
        **({"security_groups": groups} if groups else {}),
        **entry.get("port_extra_properties", {}),
    }
    fixed_ip = {"subnet_id": entry.get("subnet"), "ip_address": entry.get("fixed_ip")}
    fixed_ip = {name: value for name, value in fixed_ip.items() if value}
    return {**body, "fixed_ips": [fixed_ip]} if fixed_ip else body


def _release(project: Project, server: CloudObject, keep: set[str] | frozenset[str]) -> None:
    """Delete or disconnect the server's former ports."""
    for port in _stored_ports(project, server):
        if port.id in keep:
            continue
        if _is_own(server, port):
            cloud_objects.delete(project.tx, port.id)
        else:
            project.save(port, device_id="", device_owner="", status="DOWN")


def _is_own(server: CloudObject, port: CloudObject) -> bool:
    """Return whether the port exists only for the server."""
    return port.arguments.get(PART_OF) == server.external_id


def _stored_ports(project: Project, server: CloudObject) -> list[CloudObject]:
    return [port for id in server.observed.get(_PORTS, ()) if (port := project.find(CloudKind.PORT, id)) is not None]


def _addresses(
    project: Project, ports: Sequence[CloudObject], floating_ips: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the members of a server's representation that depend on its ports."""
    by_network: dict[str, list[dict[str, Any]]] = {}
    for port in ports:
        label = networks.name_of(project, port.specification["network_id"])
        listed = by_network.setdefault(label, [])
        listed += [_address(port, fixed_ip["ip_address"], "fixed") for fixed_ip in port.observed["fixed_ips"]]
        listed += [
            _address(port, floating_ip["floating_ip_address"], "floating")
            for floating_ip in floating_ips
            if floating_ip.get("port_id") == port.external_id
        ]
    listed_ports = {port.external_id: {name: port.observed[name] for name in _PORT_MEMBERS} for port in ports}
    return {"addresses": by_network, _PORTS: listed_ports}


def _address(port: CloudObject, address: str, kind: str) -> dict[str, Any]:
    return {
        "version": 6 if ":" in address else 4,
        "addr": address,
        "OS-EXT-IPS:type": kind,
        "OS-EXT-IPS-MAC:mac_addr": port.observed["mac_address"],
    }


def _fingerprint(public_key: str) -> str:
    """Return the fingerprint that Nova computes: MD5 of the key's bytes. Raises Invalid for a malformed key."""
    try:
        data = base64.b64decode(public_key.split()[1], validate=True)
    except (IndexError, ValueError):
        raise Invalid("public_key: Keypair data is invalid: failed to generate fingerprint") from None
    digest = hashlib.md5(data, usedforsecurity=False).hexdigest()
    return ":".join(digest[index : index + 2] for index in range(0, len(digest), 2))
