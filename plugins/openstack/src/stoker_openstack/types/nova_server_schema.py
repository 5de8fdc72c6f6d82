"""Properties and attributes of OS::Nova::Server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.resources.properties import Property
from stoker.types import server_base, server_types
from stoker.types.user_data import FORMATS, SOFTWARE_CONFIG
from stoker_openstack.types.cloud_properties import flag, integer, mapping, maps, object_name, reference, text, texts
from stoker_openstack.types.neutron_port import EXTRA_PROPERTIES

#: Names and values that the server's policies have in common.
REPLACE, REBUILD, IGNORE, RESIZE, PRESERVE = "REPLACE", "REBUILD", "IGNORE", "RESIZE", "REBUILD_PRESERVE_EPHEMERAL"


_DEVICE = {
    "volume_id": text("Id of the volume.", key=None, constraint="cinder.volume"),
    "snapshot_id": text("Id of the snapshot from which the volume is created.", key=None, constraint="cinder.snapshot"),
    "volume_size": integer("Size of the new volume in GiB."),
    "delete_on_termination": flag("Whether the volume is deleted with the server."),
}
#: Entries of the lists of block devices, in the older and the newer form, and of networks.
OLDER_DEVICE = {"device_name": text("Name of the device, such as vda.", required=True), **_DEVICE}
DEVICE = {
    "device_name": text("Name of the device, such as vda."),
    **_DEVICE,
    "volume_type": text("Name or id of the new volume's type.", constraint="cinder.vtype"),
    **reference("image", "Name or id of the image of the new volume.", key=None, constraint="glance.image"),
    "swap_size": integer("Size of a swap disk in MiB.", key=None),
    "ephemeral_size": integer("Size of an ephemeral disk in GiB.", key=None, minimum=1),
    "ephemeral_format": text(
        "File system of the ephemeral disk.", key=None, allowed=("ext2", "ext3", "ext4", "xfs", "ntfs")
    ),
    "device_type": text("Type of the device.", allowed=("cdrom", "disk")),
    "disk_bus": text("Bus of the device.", allowed=("ide", "lame_bus", "sata", "scsi", "usb", "virtio")),
    "boot_index": integer("Position among the devices to boot from."),
}
NETWORK = {
    **reference("network", "Name or id of the network.", "uuid", constraint="neutron.network"),
    "allocate_network": text("Let the cloud choose or add no network.", key=None, allowed=("none", "auto")),
    "subnet": text("Name or id of the subnet.", constraint="neutron.subnet"),
    "fixed_ip": text("Address in the network."),
    "port": text("Name or id of an existing port, in place of the network.", constraint="neutron.port"),
    "port_extra_properties": mapping(
        "Properties of the port that is created for the network.", key=None, schema=EXTRA_PROPERTIES
    ),
    "floating_ip": text("Id of the floating IP for this network."),
    "tag": text("Tag of the interface."),
}

PROPERTIES: Mapping[str, Property] = {
    "name": object_name(update_allowed=True),
    "image": text("Name or id of the image.", key="imageRef", constraint="glance.image", update_allowed=True),
    "flavor": text(
        "Name or id of the flavor; local servers need none.",
        key="flavorRef",
        constraint="nova.flavor",
        update_allowed=True,
    ),
    "flavor_update_policy": text(
        "What a change of the flavor does.", key=None, default=RESIZE, allowed=(RESIZE, REPLACE), update_allowed=True
    ),
    "image_update_policy": text(
        "What a change of the image does.",
        key=None,
        default=REBUILD,
        allowed=(REBUILD, REPLACE, PRESERVE),
        update_allowed=True,
    ),
    "key_name": text("Name of the key pair.", constraint="nova.keypair"),
    "admin_pass": text("Password of the administrator.", key="adminPass", update_allowed=True),
    "admin_user": text("Without effect, as in Heat.", key=None),
    "availability_zone": text("Availability zone."),
    "security_groups": Property(kind="list", default=[], description="Names or ids of security groups."),
    "networks": maps(
        "Networks of the server, in the order of its interfaces; by default those that the cloud chooses.",
        NETWORK,
        key=None,
        update_allowed=True,
    ),
    "block_device_mapping": maps("Volumes of the server, in the older form.", OLDER_DEVICE, key=None),
    "block_device_mapping_v2": maps("Volumes and local disks of the server.", DEVICE, key=None),
    "scheduler_hints": mapping("Names and values for Nova's scheduler.", key="os:scheduler_hints"),
    "metadata": mapping("Names and values that the server can read.", key=None, default={}, update_allowed=True),
    "tags": texts("Tags of the server.", update_allowed=True),
    "config_drive": flag("Whether the server gets its data on a drive."),
    "diskConfig": text(
        "Whether the disk is partitioned to its whole size.", key="OS-DCF:diskConfig", allowed=("AUTO", "MANUAL")
    ),
    "personality": mapping("Files by path; deprecated in Nova.", key=None, default={}),
    "reservation_id": text("Id of a reservation."),
    "user_data": text(
        "Data for the boot, or the id of a config with the data.", key=None, default="", update_allowed=True
    ),
    "user_data_format": text(
        "How user data is made up; deployments need SOFTWARE_CONFIG.",
        key=None,
        default=SOFTWARE_CONFIG,
        allowed=FORMATS,
    ),
    "user_data_update_policy": text(
        "What a change of the user data does.",
        key=None,
        default=REPLACE,
        allowed=(REPLACE, IGNORE, REBUILD),
        update_allowed=True,
    ),
    **server_base.PROPERTIES,
}

ATTRIBUTES: Mapping[str, str] = {
    "name": "Name of the server.",
    "instance_name": "Name of the instance on its host.",
    "addresses": "Addresses by network's name and id, each with its port.",
    "networks": "Addresses by network's name and id, as plain lists.",
    "first_address": "The first address; empty if there is none.",
    "accessIPv4": "Address for access, as set in Nova.",
    "accessIPv6": "Address for access, as set in Nova.",
    "console_urls": "URLs of consoles by type.",
    "tags": "Tags of the server.",
    "address": "The same as first_address (Stoker's own).",
    **server_types.OWN_ATTRIBUTES,
}


#: Attributes with another name in Nova's representation.
_RENAMED = {"instance_name": "OS-EXT-SRV-ATTR:instance_name", "console_urls": "stoker:consoles"}
_DEFAULTS: Mapping[str, Any] = {"console_urls": {}, "tags": [], "accessIPv4": "", "accessIPv6": ""}


def read_attribute(server: Mapping[str, Any], name: str) -> Any:
    """Return the attribute ``name`` of a server in Nova's representation."""
    if name == "addresses":
        return _by_name_and_id(server, list)
    if name == "networks":
        return _by_name_and_id(server, lambda entries: [entry["addr"] for entry in entries])
    if name in ("first_address", "address"):
        return next((entry["addr"] for entries in _entries(server).values() for entry in entries), "")
    return server.get(_RENAMED.get(name, name), _DEFAULTS.get(name))


def _by_name_and_id(server: Mapping[str, Any], convert: Any) -> dict[str, Any]:
    """Return the entries of each network, by its name and by its id, as Heat does."""
    result = {}
    for label, entries in _entries(server).items():
        result[label] = convert(entries)
        for network_id in dict.fromkeys(entry["network"] for entry in entries if entry.get("network")):
            result[network_id] = convert([entry for entry in entries if entry.get("network") == network_id])
    return result


def _entries(server: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """
    Return Nova's addresses, each with the ids of its port, network and subnets.

    Nova lists an address for some time after its port is detached, so addresses without a port are left out.
    """
    ports = list((server.get("stoker:ports") or {}).values())
    result = {}
    for label, entries in (server.get("addresses") or {}).items():
        placed = [{**entry, **_place(entry, ports)} for entry in entries]
        result[label] = [entry for entry in placed if entry["port"] is not None or not ports]
    return {label: entries for label, entries in result.items() if entries}


def _place(entry: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Find the port of an address by the address itself, otherwise by its MAC address, which several may share."""
    candidates = [
        port for port in ports if entry["addr"] in (item["ip_address"] for item in port.get("fixed_ips") or ())
    ]
    candidates += [port for port in ports if port.get("mac_address") == entry.get("OS-EXT-IPS-MAC:mac_addr")]
    for port in candidates:
        subnets = [fixed_ip["subnet_id"] for fixed_ip in port.get("fixed_ips") or ()]
        return {"port": port["id"], "network": port["network_id"], "subnets": subnets}
    return {"port": None, "network": None, "subnets": []}
