"""
Objects of a cloud that belong to resources (servers, networks, ports, volumes), and the interface of clouds, which the
resource types use.

The specification of an object is the body of the service's create request, without its outer key, with these
differences:

========================= ==============================================================================================
kind                      specification
========================= ==============================================================================================
all                       Names are allowed where the service expects ids. A key that is missing is not changed by an
                          update; a property that was removed from a template needs its default value.
server                    Nova's ``server``; ``os:scheduler_hints`` is a key of it. ``user_data`` is the plain text or
                          base64. ``imageRef`` may be missing (boot from volume). ``networks`` is ``auto``, ``none``, or
                          a list; besides Nova's ``uuid``, ``port``, ``fixed_ip`` and ``tag``, an entry may have
                          ``subnet``, ``port_extra_properties`` (a port of the server's own is created and deleted with
                          the server) and ``floating_ip`` (an id). ``tags`` is a list.
                          ``stoker:preserve_ephemeral``: a rebuild keeps the ephemeral disk.
                          ``stoker:console_types``: console URLs to request after the start (``novnc``, …).
keypair                   Nova's ``keypair``.
network, subnet, port,    Neutron's body, with ``tags``. Ids may be names: ``network_id``, ``subnet_id``,
router, floating_ip       ``subnetpool_id``, ``floating_network_id``, ``security_groups``, ``qos_policy_id``,
                          ``external_gateway_info.network_id``, ``fixed_ips[].subnet_id``. ``stoker:takes_over_from``
                          of a port lists the ids of objects, ports as well, that lose their addresses before.
router_interface          ``router_id``, and ``subnet_id`` or ``port_id``.
security_group            Neutron's body; ``stoker:rules`` is the list of rules (bodies without ``security_group_id``;
                          ``remote_group_id: _self`` is the group itself). Without a rule for egress, Neutron's default
                          rules for egress remain.
security_group_rule       Neutron's body.
router_gateway            ``router_id``, ``network_id``.
extra_route_set           ``router_id``; ``routes`` is the list of the set's own routes.
floating_ip_association   ``floatingip_id`` (id or address), ``port_id``, ``fixed_ip_address``.
port_forwarding           Neutron's body, with ``floatingip_id`` (id or address).
volume                    Cinder's ``volume``; ``imageRef``, ``snapshot_id``, ``source_volid`` and ``volume_type`` may
                          be names. ``stoker:scheduler_hints``; ``stoker:read_only``; ``stoker:backup_id`` names a
                          backup that is restored into the volume.
volume_attachment         ``server_id``, ``volume_id``, ``device``.
volume_type               Cinder's ``volume_type`` with ``is_public``; ``stoker:projects`` are the names or ids of the
                          projects that may use it.
volume_encryption         Cinder's ``encryption``, with ``volume_type``.
image                     Glance's body; ``stoker:location`` is the URL that Glance downloads.
container                 ``name``; ``headers``, in lower case; ``stoker:purge_on_delete``.
secret                    Barbican's body.
========================= ==============================================================================================

``observed`` has further keys of Stoker's own: ``stoker:snapshot`` after SNAPSHOT (``snapshot_image_id`` of a server,
``backup_id`` of a volume), ``stoker:consoles`` (URL by type), ``stoker:ports`` (the ports of a server by id, with
their addresses), ``stoker:floating_ips`` (the ids of those that a server's networks have), and ``stoker:adopted_ports``
(the ids of ports without a marker that are deleted with an adopted server). The ``arguments`` of DELETE_SNAPSHOT have
``snapshot_image_id`` or ``backup_id``, and those of DELETE ``snapshot``, if the deletion policy is Snapshot.

Further keys that resource types write: ``stoker:rebuilds`` of a server is the number of rebuilds that changes of its
user data require; a driver rebuilds the server if ``observed`` has a lower number (0 if it has none), and then stores
the number there. ``stoker:dhcp_agent_ids`` of a network and ``stoker:l3_agent_ids`` of a router are lists of agents.
``stoker:account_headers`` of a container are headers of the account, in lower case. ``stoker:members`` and
``stoker:active`` of an image are the projects that share it, and whether it is activated.

Types of EC2 refer to other objects than Neutron: ``stoker:server_id`` of a floating IP or an association stands for
``port_id`` (the first port of the server), and ``stoker:external_network`` of a floating IP for ``floating_network_id``
(the cloud's first external network).

External ids are those of the service, except for KEYPAIR and CONTAINER (name), SECRET (``secret_ref``),
ROUTER_INTERFACE (``<router id>:subnet_id=<id>`` or ``<router id>:port_id=<id>``), ROUTER_GATEWAY
(``<router id>:<network id>``), EXTRA_ROUTE_SET (router id), FLOATING_IP_ASSOCIATION (``<floating ip id>:<port id>``)
and VOLUME_ENCRYPTION (volume type id), as in Heat. A container is represented by its headers in lower case, and by
``stoker:url``. A set of extra routes is represented by the ``routes`` that it may have added to the router.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from stoker.model.stack import Status
from stoker.store.tx import Tx

#: The beginning of the keys of a specification or a representation that are no member of the service's.
OWN_PREFIX = "stoker:"
#: Keys of the metadata by which Stoker recognizes its own objects.
RESOURCE_KEY, SITE_KEY = "stoker-resource-id", "stoker-site"
#: Key of the metadata of an image that saves a server: the generation of the server's row that requested the image.
GENERATION_KEY = "stoker-generation"
#: Key of a server's representation for its ports by id, and what it has of each.
PORTS = "stoker:ports"
PORT_MEMBERS = ("id", "name", "network_id", "mac_address", "fixed_ips", "status", "security_groups")
#: The protocol of each of Heat's types of consoles.
CONSOLES = {
    "novnc": "vnc",
    "xvpvnc": "vnc",
    "spice-html5": "spice",
    "rdp-html5": "rdp",
    "serial": "serial",
    "webmks": "mks",
}

#: The kind of objects that a value with one of Heat's custom constraints names; see also ``cloud.nouns``.
CONSTRAINTS: Mapping[str, str] = {
    "glance.image": "image",
    "nova.flavor": "flavor",
    "nova.server": "server",
    "nova.keypair": "keypair",
    "neutron.network": "network",
    "neutron.subnet": "subnet",
    "neutron.subnetpool": "subnetpool",
    "neutron.port": "port",
    "neutron.router": "router",
    "neutron.security_group": "security_group",
    "neutron.floatingip": "floating_ip",
    "neutron.qos_policy": "qos_policy",
    "cinder.volume": "volume",
    "cinder.snapshot": "snapshot",
    "cinder.backup": "backup",
    "cinder.vtype": "volume_type",
    "keystone.project": "project",
}


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of an object without Stoker's marker."""
    return {key: value for key, value in metadata.items() if key not in (RESOURCE_KEY, SITE_KEY)}


def body_of(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Return the specification without the keys for the driver."""
    return {key: value for key, value in specification.items() if not key.startswith(OWN_PREFIX)}


class CloudKind(StrEnum):
    """The kind of a cloud object."""

    SERVER = "server"
    KEYPAIR = "keypair"
    NETWORK = "network"
    SUBNET = "subnet"
    PORT = "port"
    ROUTER = "router"
    ROUTER_INTERFACE = "router_interface"
    ROUTER_GATEWAY = "router_gateway"
    EXTRA_ROUTE_SET = "extra_route_set"
    SECURITY_GROUP = "security_group"
    SECURITY_GROUP_RULE = "security_group_rule"
    FLOATING_IP = "floating_ip"
    FLOATING_IP_ASSOCIATION = "floating_ip_association"
    PORT_FORWARDING = "port_forwarding"
    VOLUME = "volume"
    VOLUME_ATTACHMENT = "volume_attachment"
    VOLUME_TYPE = "volume_type"
    VOLUME_ENCRYPTION = "volume_encryption"
    IMAGE = "image"
    CONTAINER = "container"
    SECRET = "secret"  # noqa: S105 — a kind of objects


class CloudAction(StrEnum):
    """What the cloud has to do with an object."""

    #: Create the object, or change it to its specification.
    ENSURE = "ensure"
    #: Take over an existing object and leave it as it is. Fails if the object is missing or broken.
    ADOPT = "adopt"
    DELETE = "delete"
    SUSPEND = "suspend"
    RESUME = "resume"
    #: Read the object, and fail if it is missing or broken.
    CHECK = "check"
    SNAPSHOT = "snapshot"
    #: Delete what an earlier SNAPSHOT created; the object stays.
    DELETE_SNAPSHOT = "delete_snapshot"


class CloudObject(Struct, frozen=True, kw_only=True):
    """
    An object of a cloud, with its desired and observed states.

    ``id`` is the id of the resource that the object belongs to, or derives from it if a resource has several objects;
    ``root_id`` is that of the root of the resource's tree of stacks. See the module docstring for ``specification``,
    ``arguments`` and ``observed``.
    """

    id: str
    kind: CloudKind
    project_id: str
    root_id: str
    name: str
    specification: Mapping[str, Any] = field(default_factory=dict)
    action: CloudAction
    #: Arguments of the action, such as the snapshot of DELETE_SNAPSHOT.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    #: The state of the action; ``reason`` says why it failed or what it waits for.
    status: Status = Status.IN_PROGRESS
    reason: str = ""
    #: The desired generation counts requests; the observed generation is the last one that was applied.
    desired_generation: int = 0
    observed_generation: int = 0
    #: The id that the cloud gave the object; None until the object exists.
    external_id: str | None = None
    observed: Mapping[str, Any] = field(default_factory=dict)
    #: The type of the error of a failed action, as Heat names it (ResourceInError).
    error_type: str = "Error"
    #: What the driver noted about the action in progress, to continue after an interruption.
    progress: Mapping[str, Any] = field(default_factory=dict)
    #: The list of the cloud in which the object is polled, for example ``servers``, and since when; None: it is not.
    awaits: str | None = None
    awaited_since: datetime | None = None

    def following(self, current: CloudObject | None) -> CloudObject:
        """Return this requested object, with its action in progress, as the next generation of the present one."""
        before = current or self
        return replace(
            before,
            name=self.name,
            specification=self.specification,
            action=self.action,
            arguments=self.arguments,
            status=Status.IN_PROGRESS,
            reason="",
            error_type="Error",
            desired_generation=before.desired_generation + 1,
            external_id=self.external_id or before.external_id,
            progress={},
            awaits=None,
            awaited_since=None,
        )


class Cloud(Protocol):
    """
    A cloud that has servers, networks and volumes.

    Calls act inside a transaction and perform no I/O: a cloud elsewhere defers a job, and calls the resource's
    ``check`` whenever the action has ended. A cloud of rows may end the action at once.
    """

    def request(self, tx: Tx, wanted: CloudObject) -> CloudObject:
        """
        Record the desired state of an object, and start the action. Returns the object: IN_PROGRESS, COMPLETE or
        FAILED. A newer request replaces one in progress.

        ``external_id`` names an existing object. With ADOPT, the resource takes the object over: the cloud only reads
        the object, and later requests change and delete it. With CHECK, the resource only refers to it
        (``external_id`` of a template): the cloud reads the object and never changes it.
        """
        ...

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none, or if it was deleted."""
        ...

    def forget(self, tx: Tx, id: str) -> None:
        """Drop the record of an object and leave the object itself as it is."""
