"""The specification of a server: the translation of properties to Nova's request, and rules between properties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Source
from stoker.resources.base import Properties
from stoker_openstack.model import CONSOLES
from stoker_openstack.types.cloud_properties import members, refuse_several, value_specs
from stoker_openstack.types.neutron_port import EXTRA_PROPERTIES, adjust_port
from stoker_openstack.types.nova_server_schema import DEVICE, NETWORK, OLDER_DEVICE, PRESERVE, PROPERTIES

#: Properties of an entry of ``networks`` that say where the interface is.
_PLACES = ("network", "uuid", "port", "subnet", "allocate_network")
#: Properties of an entry of ``block_device_mapping_v2`` for the disk's content, and the type of the source.
_SOURCES = {"volume_id": "volume", "snapshot_id": "snapshot", "image": "image", "image_id": "image"}


def specify(name: str, properties: Properties, *, user_data: str = "", rebuilds: int = 0) -> dict[str, Any]:
    """
    Return the specification of a server; see ``model``.

    ``user_data`` is complete, in place of the property. ``rebuilds`` counts the rebuilds for changed user data.
    """
    files = [{"path": str(path), "contents": str(text)} for path, text in properties["personality"].items()]
    return {
        **members(PROPERTIES, properties),
        "name": name,
        "metadata": {str(key): str(value) for key, value in properties["metadata"].items()},
        "security_groups": [{"name": str(group)} for group in properties["security_groups"]],
        **_networks(properties["networks"]),
        **_devices(properties),
        **({"personality": files} if files else {}),
        **({"user_data": user_data} if user_data else {}),
        **({"stoker:rebuilds": rebuilds} if rebuilds else {}),
        "stoker:preserve_ephemeral": properties["image_update_policy"] == PRESERVE,
    }


def console_types(source: Source) -> list[str]:
    """
    Return the types of consoles whose URLs a template reads with the attribute ``console_urls``: those that it names,
    or all types if it reads the whole attribute.
    """
    text = str(source.template)
    if "console_urls" not in text:
        return []
    return [name for name in CONSOLES if f"'{name}'" in text or f".{name}" in text] or list(CONSOLES)


def boots_from_volume(properties: Properties) -> bool:
    """Return whether the server boots from a block device, so that it needs no image."""
    older = properties["block_device_mapping"] or ()
    newer = properties["block_device_mapping_v2"] or ()
    return any(str(device["device_name"]).endswith("vda") for device in older) or any(
        device.get("boot_index") == 0 or len(newer) == 1 for device in newer
    )


def validate(properties: Properties) -> None:
    """Raise StackValidationFailed for properties that contradict each other, as far as they are known."""
    older, newer = properties["block_device_mapping"], properties["block_device_mapping_v2"]
    refuse_several({"block_device_mapping": older or None, "block_device_mapping_v2": newer or None})
    networks = list(_known(properties["networks"]))
    for entry in networks:
        _validate_network(entry, len(networks))
    for device in _known(properties["block_device_mapping"]):
        _validate_source(device, ("volume_id", "snapshot_id"))
    for device in _known(properties["block_device_mapping_v2"]):
        _validate_source(device, (*_SOURCES, "swap_size", "ephemeral_size", "ephemeral_format"))


def _validate_network(entry: Properties, count: int) -> None:
    is_set = {name for name in (*_PLACES, "fixed_ip", "port_extra_properties") if entry[name] is not None}
    if not is_set & set(_PLACES):
        raise StackValidationFailed(
            'One of the properties "network", "port", "allocate_network" or "subnet" should be set for the specified'
            " network of the server."
        )
    if "allocate_network" in is_set and (len(is_set) > 1 or count > 1):
        raise StackValidationFailed(
            'Can not specify "allocate_network" with other networks or other properties of a network.'
        )
    if "port" in is_set and (others := is_set & {"fixed_ip", "port_extra_properties"}):
        raise StackValidationFailed(
            f"Cannot define the following properties at the same time: networks.port, networks.{others.pop()}."
        )


def _validate_source(device: Properties, names: Iterable[str]) -> None:
    is_set = [name for name in names if device[name] is not None]
    sources = [name for name in is_set if name in _SOURCES or name == "swap_size"]
    if not is_set:
        raise StackValidationFailed(f"A block device needs one of: {', '.join(names)}.")
    if len(sources) > 1 and not any(device[name] is UNKNOWN for name in sources):
        raise StackValidationFailed(f"A block device can have only one of: {', '.join(sources)}.")


def _known(entries: Any) -> Iterable[Properties]:
    """Return the entries of a list that are known."""
    return [entry for entry in entries or () if entry is not UNKNOWN] if isinstance(entries, list) else ()


def _networks(entries: list[Properties] | None) -> Mapping[str, Any]:
    if not entries:
        return {}
    if entries[0].get("allocate_network") is not None:
        return {"networks": entries[0]["allocate_network"]}
    return {"networks": [_network(entry) for entry in entries]}


def _network(entry: Properties) -> dict[str, Any]:
    specified, extra = members(NETWORK, entry), entry.get("port_extra_properties")
    if extra:
        port = adjust_port(members(EXTRA_PROPERTIES, extra), extra)
        specified["port_extra_properties"] = {**port, **value_specs(extra)}
    return specified


def _devices(properties: Properties) -> Mapping[str, Any]:
    """Return the block devices in Nova's newer form."""
    older, newer = properties["block_device_mapping"], properties["block_device_mapping_v2"]
    if older:
        return {"block_device_mapping_v2": [_older_device(device) for device in older]}
    return {"block_device_mapping_v2": [_device(device) for device in newer]} if newer else {}


def _older_device(device: Properties) -> dict[str, Any]:
    """Return the device; the one with the name vda is the one to boot from."""
    is_first = str(device["device_name"]).removeprefix("/dev/") == "vda"
    return {**members(OLDER_DEVICE, device), **_source(device), "boot_index": 0 if is_first else -1}


def _device(device: Properties) -> dict[str, Any]:
    specified = {**members(DEVICE, device), **_source(device)}
    size, form = device.get("ephemeral_size"), device.get("ephemeral_format")
    if device.get("swap_size") is not None:
        specified |= {"volume_size": device["swap_size"], "guest_format": "swap", "destination_type": "local"}
    elif size is not None or form is not None:
        local = {"volume_size": size, "guest_format": form}
        specified |= {name: value for name, value in local.items() if value is not None}
        specified["destination_type"] = "local"
    return specified


def _source(device: Properties) -> dict[str, Any]:
    """Return the members that state where the content of a disk comes from."""
    for name, source in _SOURCES.items():
        if device.get(name) is not None:
            return {"uuid": device[name], "source_type": source, "destination_type": "volume"}
    return {"source_type": "blank", "destination_type": "volume"}
