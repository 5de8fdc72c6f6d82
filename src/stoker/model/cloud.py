"""
Objects of a cloud that belong to resources: servers, networks, ports, volumes.

``specification`` of an object has the form of the body of the service's create request, in which names may stand for
ids. Entries that the template does not set are missing. Beyond that, each kind has:

- SERVER (``server`` of Nova's POST /servers): ``user_data`` is plain text, not base64; ``personality`` has plain
  ``contents``. ``block_device_mapping_v2`` is in Nova's form. An entry of ``networks`` may have ``stoker:port`` (the
  body of the POST /ports of a port that exists only for this entry; ``fixed_ip``, ``uuid`` and ``tag`` apply to the
  port), and ``stoker:floating_ip`` (the id of a floating IP to associate with it). ``stoker:scheduler_hints``: the
  request's ``os:scheduler_hints``. ``stoker:preserve_ephemeral``: a rebuild keeps the ephemeral disk.
  ``stoker:rebuilds``: the number of rebuilds that changes of the user data require; the driver rebuilds the server if
  ``observed`` has a lower number (0 if none), and then stores the number there. Other differences between
  specification and server (name, metadata, tags, flavor, image, networks, administrator's password) are found by
  comparison.
- KEYPAIR: ``user_id`` may be a name. Stoker generates key pairs itself: ``public_key`` is always set.
- NETWORK, SUBNET, PORT, ROUTER: ``stoker:tags``, which Neutron sets by a request of their own. NETWORK:
  ``stoker:dhcp_agent_ids``. ROUTER: ``stoker:l3_agent_ids``.
- ROUTER_INTERFACE: ``router_id``, and ``subnet_id`` or ``port_id``.
- SECURITY_GROUP: ``stoker:rules``, a list of bodies of POST /security-group-rules without ``security_group_id``;
  ``stoker:remote_self`` in a rule means that ``remote_group_id`` is the group itself. If a rule has the direction
  ``egress``, the rules that Neutron adds to every new group are removed.
- FLOATING_IP_ASSOCIATION: ``floatingip_id``, ``port_id``, ``fixed_ip_address``.
- VOLUME: ``stoker:read_only``, ``stoker:scheduler_hints``, and ``backup_id``, with which the volume is a restored
  backup.
- VOLUME_ATTACHMENT: ``stoker:server_id``, ``volumeId``, ``device``.
- IMAGE (body of Glance's POST /v2/images): ``stoker:location``, the URL from which Glance imports the data;
  ``stoker:members``; ``stoker:active``, whether the image is activated.
- CONTAINER: ``name``; ``stoker:headers`` of the container and ``stoker:account_headers`` of the account; with
  ``stoker:purge``, the deletion includes the container's objects.
- SECRET: the body of Barbican's POST /secrets.

``arguments`` of DELETE may have ``snapshot``: first store a snapshot of the volume, or an image of the server.
``arguments`` of RESTORE have ``image_id`` (servers) or ``backup_id`` (volumes).

``observed`` is the service's representation (``server`` of Nova's GET /servers/ID). Names in it may be those of any
microversion. Beyond that, SERVER has ``stoker:interfaces``: Nova's list of interfaces (``port_id``, ``net_id``,
``mac_addr``, ``fixed_ips``), and ``stoker:console_urls``: URLs of consoles by type. SNAPSHOT of a server adds
``stoker:snapshot_image_id``, of a volume ``stoker:snapshot_backup_id``. CONTAINER has the headers of a HEAD request in
lower case and ``stoker:url``. SECRET has ``secret_ref``, which is also its external id; KEYPAIR's external id is its
name, CONTAINER's too, VOLUME_ATTACHMENT's and SERVER's the id that Nova gave. ROUTER_INTERFACE's is
``<router id>:subnet_id=<id>`` or ``<router id>:port_id=<id>``, and FLOATING_IP_ASSOCIATION's is
``<floating ip id>:<port id>``, as in Heat.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

    ``id`` is the id of the resource that the object belongs to, or derives from it if a resource has several objects.
    See the module docstring for ``specification``, ``arguments`` and ``observed``.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudRequest:
    """
    A request to a cloud. ``id`` is the id of the resource; see ``CloudObject`` for ``specification``.

    ``external_id`` names an existing object. With ENSURE, the resource takes the object over (adoption). With CHECK,
    the resource only refers to it (``external_id`` of a template): the cloud reads the object and never changes it.
    """

    id: str
    kind: CloudKind
    action: CloudAction
    project_id: str
    stack_id: str
    name: str
    specification: Mapping[str, Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    external_id: str | None = None
