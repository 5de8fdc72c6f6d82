"""Objects of a cloud that belong to resources: servers, networks, ports, volumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker.model.status import Status


class CloudKind(StrEnum):
    """The kind of a cloud object."""

    SERVER = "server"
    KEYPAIR = "keypair"
    NETWORK = "network"
    SUBNET = "subnet"
    PORT = "port"
    ROUTER = "router"
    ROUTER_INTERFACE = "router_interface"
    SECURITY_GROUP = "security_group"
    SECURITY_GROUP_RULE = "security_group_rule"
    FLOATING_IP = "floating_ip"
    FLOATING_IP_ASSOCIATION = "floating_ip_association"
    VOLUME = "volume"
    VOLUME_ATTACHMENT = "volume_attachment"
    IMAGE = "image"
    CONTAINER = "container"
    SECRET = "secret"  # noqa: S105 — a kind of objects


class CloudAction(StrEnum):
    """What the cloud has to do with an object."""

    #: Create the object, or change it to its specification.
    ENSURE = "ensure"
    DELETE = "delete"
    SUSPEND = "suspend"
    RESUME = "resume"
    #: Read the object, and fail if it is missing or broken.
    CHECK = "check"
    SNAPSHOT = "snapshot"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudObject:
    """
    An object of a cloud, with its desired and observed states.

    ``id`` is the id of the resource that the object belongs to. ``specification`` has the form of the body of the
    service's create request (``server`` of Nova's POST /servers, ``port`` of Neutron's POST /ports), except that names
    are allowed wherever the service expects ids, and that keys with the prefix ``stoker:`` hold what the service's
    request has no place for. ``observed`` is the service's last representation of the object.
    """

    id: str
    kind: CloudKind
    project_id: str
    root_id: str
    name: str
    specification: Mapping[str, Any]
    action: CloudAction
    #: Arguments of the action, such as the image of RESTORE.
    arguments: Mapping[str, Any]
    #: The state of the action; ``reason`` says why it failed or what it waits for.
    status: Status
    reason: str
    #: The desired generation counts requests; the observed generation is the last one that was applied.
    desired_generation: int
    observed_generation: int
    #: The id that the cloud gave the object; None until the object exists.
    external_id: str | None
    observed: Mapping[str, Any]
