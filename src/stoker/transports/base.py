"""
What a transport is: one small value a file, implementing the protocols it can.

Signal transports say how a result comes back; metadata transports say how a document reaches a server. Some leave
things in the object store or in the messaging service: they ``open`` and ``close`` a place there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from stoker.store.tx import Tx

#: What a transport may need of the site, which may do without.
OBJECTS, QUEUES = "objects", "queues"


@dataclass(frozen=True, slots=True)
class User:
    """One that was made at a Keystone for a resource."""

    user_id: str
    project_id: str
    domain_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """The resource that a transport serves: a server that gets its document, or a deployment whose result comes."""

    resource_id: str
    resource_name: str
    #: Heat's name for the real thing.
    name: str
    stack_id: str
    stack_name: str
    project_id: str
    #: Of a deployment: which of its runs, so that a late result of an earlier one can be told; empty: not said.
    run: str = ""
    #: None where Stoker's own stands for it.
    user: User | None = None
    #: The server's agent is ours: it needs no login where a signed URL does.
    own_agent: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Of an object."""

    container: str
    name: str
    #: Whatever is put there counts, not only what was put last.
    versions: bool = False


@dataclass(frozen=True, slots=True)
class Login:
    """A user that may see and signal one resource and nothing else."""

    user_id: str
    username: str
    password: str
    #: Where it logs in to.
    project_id: str
    domain_id: str
    access_key: str
    secret_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """What opens the messages of one queue to one method, until it ends: no login is needed."""

    #: Of the messaging service.
    url: str
    project_id: str
    #: As they are sent: headers of Zaqar's.
    paths: str
    methods: str
    expires: str
    signature: str


class Objects(Protocol):
    """An object store: the embedded one, or Swift."""

    def open(self, tx: Tx, party: Party, place: Place, owner: str) -> None:
        """Have an empty object there, in a container that is made for ``owner`` if need be."""

    def put(self, tx: Tx, party: Party, place: Place, data: bytes) -> None: ...

    def close(self, tx: Tx, party: Party, place: Place) -> None:
        """Have it gone, and its container with the last of its objects."""

    def expect(self, tx: Tx, party: Party, place: Place, until: datetime | None = None) -> None:
        """A run begins whose result is going to be put there; or signals are, until then."""

    def url(self, party: Party, place: Place, verb: str) -> str:
        """What opens that object to ``verb``, for as long as a clock can tell."""
        ...


class Queues(Protocol):
    """A messaging service: the embedded one, or Zaqar. Queues are named as the resource's id."""

    def open(self, tx: Tx, party: Party, *, keep_newest: bool) -> None:
        """``keep_newest``: whoever takes the newest message leaves it there."""

    def replace(self, tx: Tx, party: Party, body: Any) -> None:
        """Post a message, and have those gone that it makes stale."""

    def expect(self, tx: Tx, party: Party, until: datetime | None = None) -> None:
        """A run begins whose result is going to be posted there; or signals are, until then."""

    def sign(self, tx: Tx, party: Party, method: str) -> bool:
        """Have its messages opened to ``method``. False: not yet; the resource's ``check`` is asked once it is so."""
        ...

    def signed(self, tx: Tx, party: Party, method: str) -> Signed | None:
        """None where nothing was signed, or the service signs nothing."""
        ...

    def close(self, tx: Tx, party: Party) -> None: ...


class Messaging(Protocol):
    """A project's own queues, as templates ask for them. What cannot be raises Invalid or Conflict."""

    @property
    def url(self) -> str: ...

    def create(self, tx: Tx, project_id: str, queue: str, metadata: Mapping[str, Any]) -> None: ...

    def describe(self, tx: Tx, project_id: str, queue: str, metadata: Mapping[str, Any]) -> None: ...

    def delete(self, tx: Tx, project_id: str, queue: str) -> None: ...

    def post(self, tx: Tx, project_id: str, queue: str, bodies: Sequence[Any], ttl: int) -> None: ...

    def sign(
        self, project_id: str, queue: str, paths: Sequence[str], methods: Sequence[str], expires: datetime
    ) -> Mapping[str, Any]:
        """``signature``, ``expires``, ``paths``, ``methods`` and ``project``."""
        ...

    def subscribe(self, tx: Tx, project_id: str, queue: str, said: Mapping[str, Any]) -> str:
        """The subscription's id."""
        ...

    def resubscribe(self, tx: Tx, project_id: str, queue: str, id: str, said: Mapping[str, Any]) -> None: ...

    def unsubscribe(self, tx: Tx, project_id: str, queue: str, id: str) -> None: ...


class Site(Protocol):
    """What transports may use of the rest of Stoker; ``serve`` provides it."""

    @property
    def public_url(self) -> str: ...

    @property
    def auth_url(self) -> str: ...

    @property
    def keeps_users(self) -> bool:
        """Here, and not at a Keystone: who stands for a resource or for a deployment can log in at once."""
        ...

    @property
    def region(self) -> str: ...

    @property
    def has_objects(self) -> bool: ...

    @property
    def has_queues(self) -> bool: ...

    @property
    def objects(self) -> Objects: ...

    @property
    def queues(self) -> Queues: ...

    @property
    def messaging(self) -> Messaging | None:
        """None where templates can have no queues of this site's."""
        ...

    def login(self, party: Party) -> Login: ...

    def signed_url(self, party: Party, kind: str, verb: str) -> str:
        """A URL of CloudFormation's API, ``signal`` or ``waitcondition``, that only ``verb`` may be sent to."""
        ...


@runtime_checkable
class LoggingIn(Protocol):
    """The agent comes with a token: its party needs a user that can log in."""

    logs_in: bool


@runtime_checkable
class Opening(Protocol):
    """With our agent nobody logs in: a signed URL opens the party's queue."""

    #: The method that it needs.
    opens_to: str


@runtime_checkable
class Signalling(Protocol):
    signal_name: str
    #: False when no result is expected: the deployment is complete once it is in the document.
    awaits_signal: bool

    def signal_inputs(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Any]:
        """``deploy_*`` inputs that tell the agent where and how to send its result. Asked again, it is the same."""


@runtime_checkable
class Carrying(Protocol):
    metadata_name: str

    def sections(self, tx: Tx, site: Site, party: Party) -> Mapping[str, Mapping[str, Any]]:
        """Sections of ``os-collect-config`` that tell the agent where to fetch its document."""


@runtime_checkable
class Pushing(Carrying, Protocol):
    """Carries the document to a place where the agent finds it."""

    #: It is gone from there after an hour, and has to be carried there again.
    expires: bool

    def publish(self, tx: Tx, site: Site, party: Party, document: Mapping[str, Any]) -> None: ...


@runtime_checkable
class Lodging(Protocol):
    """Has something for each of its parties elsewhere, which goes with the party."""

    def open(self, tx: Tx, site: Site, party: Party) -> None: ...

    def close(self, tx: Tx, site: Site, party: Party) -> None: ...


def login_keys(site: Site, party: Party) -> dict[str, str]:
    """What a section of ``os-collect-config`` says of the agent's user, whatever it asks for with its token."""
    login = site.login(party)
    return {
        "user_id": login.user_id,
        "password": login.password,
        "auth_url": site.auth_url,
        "project_id": login.project_id,
        "region_name": site.region,
    }
