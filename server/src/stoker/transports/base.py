"""
Protocols of transports, and the platform services that transports use.

A signal transport defines how a deployment's result returns to Stoker; a metadata transport defines how a document
reaches a server. A transport is one frozen value that implements the protocols that apply to it: ``SignalTransport``,
``MetadataTransport``, ``PublishingTransport`` and ``NeedsProvisioning``. There is a module for each channel, which
lists its transports in ``TRANSPORTS``. Three attributes are optional:

- ``needs`` (``OBJECTS`` or ``QUEUES``): the transport is disabled on a site that lacks this service.
- ``logs_in``: the agent authenticates with a token, so that the target needs a user that can log in.
- ``signed_method``: Stoker's own agent uses the queue by a signed URL that permits this HTTP method, without a login.

All methods run inside a transaction. They must not perform I/O: an effect outside the database is a job.

A minimal signal transport:

    @dataclass(frozen=True, slots=True)
    class WebhookSignal:
        signal_name: str = "WEBHOOK_SIGNAL"
        awaits_signal: bool = True

        def signal_inputs(self, tx, platform, target):
            return {"deploy_signal_id": platform.signed_url(target, "signal", "POST"), "deploy_signal_verb": "POST"}

    TRANSPORTS = (WebhookSignal(),)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeGuard, runtime_checkable
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct

from stoker.identity import ec2, stack_users
from stoker.identity.directory import DOMAIN_ID
from stoker.identity.stack_users import StackUsers
from stoker.messaging import Messaging
from stoker.messaging.signed_urls import SignedUrl
from stoker.model.ids import Arn, remote_name
from stoker.store.tx import Tx

#: Values of a transport's ``needs``: services that a site may lack.
OBJECTS, QUEUES = "objects", "queues"
#: The region of a site.
REGION = "RegionOne"


@dataclass(frozen=True, slots=True)
class User:
    """A user that Stoker created in Keystone for a resource."""

    user_id: str
    project_id: str
    domain_id: str


class TransportTarget(Struct, frozen=True, kw_only=True):
    """
    The remote end of a transport: a server that receives its document, or a deployment that returns its result.

    ``resource_id`` and ``resource_name`` belong to the stack resource. A deployment without a stack uses its own id for
    both.
    """

    resource_id: str
    resource_name: str
    #: The name of the physical resource (Heat's ``physical_resource_name``).
    name: str
    stack_id: str
    stack_name: str
    project_id: str
    #: The number of a deployment's current run, which identifies late results of an earlier run; empty if not known.
    run: str = ""
    #: The resource's Keystone user; None if the user is Stoker's own.
    user: User | None = None
    #: True if the server runs Stoker's agent, which needs no login if a signed URL suffices.
    own_agent: bool = False

    @property
    def remote_name(self) -> str:
        """The name of the target's object or queue. Each run has its own, so that its result can end no other run."""
        return remote_name(self.resource_id, self.run)


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """The address of an object: container and name."""

    container: str
    name: str
    #: True if every version of the object counts (signals), not only the latest one.
    versions: bool = False


@dataclass(frozen=True, slots=True)
class Login:
    """The credentials of a user that may read and signal one resource and nothing else."""

    user_id: str
    username: str
    password: str
    #: The project and domain of the user.
    project_id: str
    domain_id: str
    access_key: str
    secret_key: str


class Objects(Protocol):
    """An object store: the embedded one or an external Swift."""

    def open(self, tx: Tx, target: TransportTarget, ref: ObjectRef, owner: str) -> None:
        """Create an empty object, and its container for ``owner`` if the container does not exist."""

    def put(self, tx: Tx, target: TransportTarget, ref: ObjectRef, data: bytes) -> None:
        """Replace the object's data."""
        ...

    def close(self, tx: Tx, target: TransportTarget, ref: ObjectRef) -> None:
        """Delete the object, and its container if it is empty afterwards."""

    def await_result(self, tx: Tx, target: TransportTarget, ref: ObjectRef, until: datetime | None = None) -> None:
        """Expect the result of the run that begins in this object; with ``until``, expect signals until that time."""

    def url(self, target: TransportTarget, ref: ObjectRef, verb: str) -> str:
        """Return a pre-signed URL that permits ``verb`` on the object. The URL does not expire before 2038."""
        ...


class Queues(Protocol):
    """A messaging service: the embedded one or an external Zaqar. The name of a queue is ``target.remote_name``."""

    @property
    def url(self) -> str:
        """The base URL of the service."""
        ...

    def open(self, tx: Tx, target: TransportTarget, *, keep_newest: bool) -> None:
        """
        Create the queue. ``keep_newest``: a client that claims the newest message does not remove it from the queue.
        """

    def replace(self, tx: Tx, target: TransportTarget, body: Any) -> None:
        """Replace all messages of the queue with one message whose body is ``body``, a JSON value."""

    def await_result(self, tx: Tx, target: TransportTarget, until: datetime | None = None) -> None:
        """Expect the result of the run that begins in this queue; with ``until``, expect signals until that time."""

    def sign(self, tx: Tx, target: TransportTarget, method: str) -> bool:
        """
        Request a signed URL that permits ``method`` on the queue's messages.

        Returns False if the URL is not available yet; Stoker then calls the resource's ``check`` once the URL is
        signed.
        """
        ...

    def signed(self, tx: Tx, target: TransportTarget, method: str) -> SignedUrl | None:
        """Return the signed URL for ``method``; None if none was signed, or if the service does not sign URLs."""
        ...

    def close(self, tx: Tx, target: TransportTarget) -> None:
        """Delete the queue with its messages."""
        ...


@dataclass(frozen=True, slots=True)
class Platform:
    """The services of this site that transports and resource types use."""

    #: The base URL of Stoker's APIs, as agents and clients reach it.
    public_url: str
    users: StackUsers
    #: The object store and the messaging service, embedded or external.
    objects: Objects
    queues: Queues
    #: The queues that templates may create; None unless the embedded messaging service is used.
    messaging: Messaging | None
    #: The base URL of the identity API that agents log in to, without the version.
    identity_url: str
    region: str = REGION
    #: Whether the site has an object store, and a messaging service that AUTO may select.
    has_objects: bool = True
    has_queues: bool = True
    #: The certificates (PEM) that verify ``public_url``; None if servers trust its CA already.
    ca_certificates: str | None = None

    @property
    def auth_url(self) -> str:
        """The URL of the identity API that agents log in to, with its version: ``…/v3``."""
        return f"{self.identity_url}/v3"

    @property
    def keeps_users(self) -> bool:
        """
        True if users are Stoker's own, so that a new stack user can log in at once. False if Keystone stores the users.
        """
        return self.identity_url in ("", f"{self.public_url}/identity")

    def login(self, target: TransportTarget) -> Login:
        """
        Return the credentials of the target's Keystone user, or of Stoker's own user for the resource. Repeated calls
        return the same credentials.
        """
        id = stack_users.user_id(target.resource_id)
        user = target.user
        return Login(
            user_id=user.user_id if user else stack_users.user_id(target.resource_id, target.run),
            username=target.name if user else f"{target.stack_name}-{target.resource_name}",
            password=self.users.password(target.resource_id),
            project_id=user.project_id if user else target.project_id,
            domain_id=user.domain_id if user else DOMAIN_ID,
            access_key=id,
            secret_key=self.users.secret_key(target.resource_id),
        )

    def signed_url(self, target: TransportTarget, kind: str, verb: str) -> str:
        """
        Return a URL of the CloudFormation API for the method ``verb``, with the target's EC2 signature of version 2.

        ``kind``: ``signal`` or ``waitcondition``.
        """
        arn = str(Arn(target.project_id, target.stack_name, target.stack_id, target.resource_name))
        base = urlsplit(self.public_url)
        path = f"{base.path}/cfn/v1/{kind}/{arn}"
        login = self.login(target)
        params = {"SignatureMethod": "HmacSHA256", "AWSAccessKeyId": login.access_key, "SignatureVersion": "2"}
        if target.run:
            params["Run"] = target.run
        signature = ec2.sign_v2(login.secret_key, verb, base.netloc.lower(), path, params)
        return f"{base.scheme}://{base.netloc.lower()}{quote(path)}?{urlencode({**params, 'Signature': signature})}"


@runtime_checkable
class SignalTransport(Protocol):
    """Defines how a deployment's result returns to Stoker. ``signal_name`` is the value of ``signal_transport``."""

    signal_name: str
    #: False if no result is expected: the deployment is complete once it is in the document.
    awaits_signal: bool

    def signal_inputs(self, tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Any]:
        """
        Return the ``deploy_*`` inputs that tell the agent where and how to send its result.

        The names are part of Heat's derived configs
        (``heat.engine.resources.openstack.heat.software_deployment``). Repeated calls return the same inputs.
        """


@runtime_checkable
class MetadataTransport(Protocol):
    """
    Defines how a document reaches a server. ``metadata_name`` is the value of ``software_config_transport``.

    A minimal metadata transport returns one section per collector of ``os-collect-config``:

        def sections(self, tx, platform, target):
            return {"request": {"metadata_url": platform.objects.url(target, ref, "GET")}}
    """

    metadata_name: str

    def sections(self, tx: Tx, platform: Platform, target: TransportTarget) -> Mapping[str, Mapping[str, Any]]:
        """
        Return the sections of the ``os-collect-config`` configuration that tell the agent where to fetch its document.
        """


@runtime_checkable
class PublishingTransport(MetadataTransport, Protocol):
    """Writes the document to an object or a queue, from which the agent fetches it."""

    #: True if a published document expires after an hour, so that Stoker must publish it again.
    expires: bool

    def publish(self, tx: Tx, platform: Platform, target: TransportTarget, document: Mapping[str, Any]) -> None:
        """Replace the published document. ``document`` is JSON-serializable and already signed."""
        ...


class NeedsProvisioning(Protocol):
    """
    A transport that needs an object or a queue for each server, or for each run of a deployment.

    The object or queue is deleted with its target. That of a run is deleted when the next run starts.
    """

    def open(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Create the target's object or queue. For a run of a deployment, expect the result."""
        ...

    def close(self, tx: Tx, platform: Platform, target: TransportTarget) -> None:
        """Delete the target's object or queue."""
        ...


def needs_provisioning(transport: object) -> TypeGuard[NeedsProvisioning]:
    """Return whether a transport has an object or a queue for each target. ``isinstance`` would take 20 µs."""
    return hasattr(transport, "open")


def signed_method_of(transport: object) -> str | None:
    """Return the HTTP method of the signed URL by which Stoker's own agent uses the transport's queue, or None."""
    return getattr(transport, "signed_method", None)
