"""
What a resource type is: a value with a few functions over values.

Every function may run again after a crash or a deadlock before anything it did is visible, so it acts only
through the transaction; what must leave the database is deferred as a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.properties import Property
from stoker.resources.services import Nested, Services
from stoker.store.tx import Tx
from stoker.transports.base import Party, User
from stoker.work import defer_once

#: Kind of the job that has a resource's ``check`` asked at a certain time; its arguments: ``resource_id``.
WAKE = "resource.wake"


#: Where a resource's data has its user at a Keystone.
USER = "stack_user"
#: Seconds that anything may be asked to wait: ten years. No date comes out that a calendar lacks.
LONGEST_WAIT = 315_360_000


class ResourceFailure(Exception):
    """
    The resource's action failed; the text becomes its reason, behind ``resources.<name>: ``. ``outcome``: its id and
    data, where the failure is not all that came of it.
    """

    outcome: Outcome | None = None


class InnerFailure(ResourceFailure):
    """It failed inside: the text goes on with ``.resources.<inner name>: ``, ``kind`` is Heat's type of error."""

    def __init__(self, text: str, kind: str = "Error") -> None:
        super().__init__(text)
        self.kind = kind


class Replace(Exception):
    """An update cannot be done in place after all."""


class NoSuchAttribute(Exception):
    """The type has no such attribute."""


@dataclass(frozen=True, slots=True)
class Context:
    """One call's surroundings."""

    tx: Tx
    services: Services
    stack_id: str
    stack_name: str
    project_id: str
    user_project_id: str
    nested: Nested
    #: The texts that hidden parameters hold, also those of the stacks around; read when they are asked for.
    hidden: Callable[[], tuple[str, ...]]
    #: Bytes kept of what one run writes to one stream.
    log_bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """``done`` False: somebody will report later (a signal, a job), and the type's ``check`` is asked then."""

    done: bool = True
    physical_id: str | None = None
    #: Replaces what the type keeps for itself, when given.
    data: Mapping[str, Any] | None = None
    #: What the resource says of itself, where it isn't ordinary.
    reason: str = ""


DONE = Outcome()


@dataclass(frozen=True, slots=True)
class Signalled:
    """What a signal did: Heat's words for it, and the resource where it changed."""

    words: str
    resource: Resource | None = None


Properties = Mapping[str, Any]


def _kept(_context: Context, _resource: Resource) -> Outcome:
    return DONE


def _never(_context: Context, resource: Resource, _properties: Properties) -> Outcome:
    raise Replace(resource.name)


def _own_name(resource: Resource) -> Any:
    return resource.physical_id or resource.name


def _no_attribute(_context: Context, _resource: Resource, name: str) -> Any:
    raise NoSuchAttribute(name)


def _nothing_to_show(_context: Context, _resource: Resource) -> Mapping[str, Any]:
    return {}


def _itself(_context: Context, resource: Resource) -> Iterable[str]:
    return (resource.id,)


def _anything(_context: Context, _id: str) -> bool:
    return True


def _no_members(_properties: Properties) -> Iterable[tuple[str, str, Properties]]:
    return ()


def _nothing(_context: Context, _resource: Resource) -> None:
    return None


def _never_stale(_context: Context, _resource: Resource) -> bool:
    return False


def _adopted(_context: Context, resource: Resource, _properties: Properties) -> Outcome:
    return Outcome(physical_id=resource.physical_id, data=resource.data)


def _valid(_properties: Properties) -> None:
    return None


def _any_policy(_said: Any, _properties: Properties) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceType:
    """
    ``create``, ``update`` and ``delete`` start an action and ``check`` tells how it stands once somebody reported;
    all may raise ResourceFailure, ``update`` also Replace. ``update`` is asked only when every changed property
    allows it. ``attributes`` are the known names; None: any, decided at run time.
    """

    name: str
    properties: Mapping[str, Property] | None
    attributes: Mapping[str, str] | None = field(default_factory=dict)
    create: Callable[[Context, Resource, Properties], Outcome]
    update: Callable[[Context, Resource, Properties], Outcome] = _never
    delete: Callable[[Context, Resource], Outcome] = _kept
    check: Callable[[Context, Resource], Outcome] = _kept
    attribute: Callable[[Context, Resource, str], Any] = _no_attribute
    #: For types whose attributes depend on what lies behind them in ``get_attr``; goes before ``attribute``.
    attribute_at: Callable[[Context, Resource, str, tuple[Any, ...]], Any] | None = None
    #: What ``get_resource`` gives.
    reference: Callable[[Resource], Any] = _own_name
    #: Raises Invalid for properties that are each right but wrong together; values may be UNKNOWN.
    validate: Callable[[Properties], None] = _valid
    #: Raises PropertyError for an ``update_policy`` that the type cannot go by; values may be UNKNOWN.
    check_policy: Callable[[Any, Properties], None] = _any_policy
    #: Takes a signal; None: this type takes none.
    signal: Callable[[Context, Resource, Mapping[str, Any]], Signalled] | None = None
    #: Ids of the resources of its stack whose ``check`` is asked after a signal to this one.
    waiters: Callable[[Context, Resource], Iterable[str]] = _itself
    #: What SUSPEND, RESUME, CHECK and SNAPSHOT do; those that are left out do nothing. They end like ``create``.
    actions: Mapping[Action, Callable[[Context, Resource], Outcome]] = field(default_factory=dict)
    #: Whether there is such a thing of the project's: what a template's ``external_id`` may name.
    exists: Callable[[Context, str], bool] = _anything
    #: Nobody waits for what is under way any more: have it end.
    cancel: Callable[[Context, Resource], None] = _nothing
    #: Whether what it was made from, besides its properties, is another now; it is updated then.
    is_stale: Callable[[Context, Resource], bool] = _never_stale
    #: Takes over what another stack left behind: ``physical_id`` and ``data`` are as they were there.
    adopt: Callable[[Context, Resource, Properties], Outcome] = _adopted
    #: Current metadata beyond what the template says, such as a server's deployments.
    live_metadata: Callable[[Context, Resource], Mapping[str, Any]] = _nothing_to_show

    @property
    def has_live_metadata(self) -> bool:
        return self.live_metadata is not _nothing_to_show

    #: A failed one is tried again in place on the next update, instead of replaced.
    retries: bool = False
    #: (name, type, properties) of resources that one with such properties will have inside, to be validated with it.
    members: Callable[[Properties], Iterable[tuple[str, str, Properties]]] = _no_members
    #: The property that names the transport by which agents reach Stoker for it: they may have to log in.
    agents_transport: str | None = None
    #: Which transport that is in the end, and whether the server's agent is ours; None: what the property says, and no.
    reached_by: Callable[[Context, Resource, Properties], tuple[str, bool]] | None = None
    #: Other names of the type, which lists do not show.
    aliases: tuple[str, ...] = ()
    description: str = ""


def physical_name(context: Context, resource: Resource, limit: int = 255) -> str:
    """Heat's name for the real thing: stack, resource and a short id of this incarnation."""
    name = f"{context.stack_name}-{resource.name}-{resource.id.replace('-', '')[:12]}"
    return name if len(name) <= limit else f"{name[:2]}-{name[-(limit - 3) :]}"


def party_of(context: Context, resource: Resource) -> Party:
    return Party(
        resource_id=resource.id,
        resource_name=resource.name,
        name=physical_name(context, resource),
        stack_id=context.stack_id,
        stack_name=context.stack_name,
        project_id=context.project_id,
        user=User(**resource.data[USER]) if USER in resource.data else None,
    )


def wake_at(context: Context, resource: Resource, at: datetime) -> None:
    """Have ``check`` asked then; only the last time said counts."""
    defer_once(context.services.work, context.tx, WAKE, resource.id, {"resource_id": resource.id}, at=at)


def seconds(value: Any) -> timedelta | None:
    return None if value is None else timedelta(seconds=float(value))
