"""
The interface of resource types: ``ResourceType`` and the values that its functions take and return.

A resource type is a value that consists of functions. Every function runs inside a transaction and may run twice, after
a crash or a deadlock. Therefore a function acts only through ``context.tx``: it performs no other I/O, and an effect
outside the database is a job that the function defers.

A minimal resource type is a module of this package, or of an installed package (see ``stoker.resources``), with:

    def create(context, resource, properties):
        return Outcome(physical_id=physical_name(context, resource), data={"text": properties["text"].upper()})

    def attribute(context, resource, name):
        if name != "shouted":
            raise NoSuchAttribute(name)
        return resource.data.get("text")

    TYPE = ResourceType(
        name="Example::Shout",
        properties={"text": Property(kind="string", required=True)},
        attributes={"shouted": "The text in upper case."},
        create=create,
        attribute=attribute,
    )
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from msgspec import Struct, field

from stoker.hot import Definition
from stoker.model.deployment import Deployment
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources import properties as schemas
from stoker.resources.env import Nested, NestedSpec, ResourceEnv
from stoker.resources.implicit_dependencies import Rule
from stoker.resources.properties import Property
from stoker.store.tx import Tx
from stoker.transports.base import TransportTarget, User

#: Kind of the job that calls a resource's ``check`` at a given time; its arguments: ``resource_id``.
WAKE = "resource.wake"


#: Key of ``Resource.data`` for the resource's Keystone user: ``user_id``, ``project_id``, ``domain_id``.
USER = "stack_user"
#: Key of ``Resource.data`` for the name of the object that the resource has adopted.
ADOPTED_NAME = "adopted_name"
#: Key of a resource's data: whether the deletion of the resource leaves its object at the cloud.
KEEPS_OBJECT = "keeps_object"
#: Limit of every wait in seconds: ten years. The limit avoids dates beyond the calendar.
LONGEST_WAIT = 315_360_000
#: Limit of a physical name in characters, unless the physical resource has a lower limit.
LONGEST_NAME = 255


class ResourceFailure(Exception):
    """
    The resource's action failed.

    The message becomes the resource's ``status_reason``, after the prefix ``resources.<name>: ``. ``outcome`` holds the
    physical id and the data to store, if the failed action produced any. ``kind`` is Heat's type of the error.
    """

    outcome: Outcome | None = None

    def __init__(self, message: str = "", kind: str = "Error") -> None:
        super().__init__(message)
        self.kind = kind


class NestedFailure(ResourceFailure):
    """
    An action failed because a resource of the nested stack failed.

    The message continues the path with ``.resources.<inner name>: ``. ``kind`` is Heat's type of error.
    """


class Replace(Exception):
    """Raised by ``update`` if the resource cannot be updated in place and must be replaced."""


class NoSuchAttribute(Exception):
    """The type has no such attribute."""


class Context(Struct, frozen=True):
    """The transaction, the platform and the stack for one call of a resource type's function."""

    tx: Tx
    env: ResourceEnv
    stack_id: str
    stack_name: str
    project_id: str
    user_project_id: str
    nested: Nested
    #: Limit of one output stream of one run in bytes; the rest is discarded.
    log_bytes: int
    #: The deployment that this transaction has just changed, so that its resource does not read it again.
    changed: Deployment | None = None


class Outcome(Struct, frozen=True):
    """
    The result of an action.

    ``done`` False: the action continues until a signal or a job reports; the engine then calls the type's ``check``.
    """

    done: bool = True
    physical_id: str | None = None
    #: Replaces ``Resource.data``, the type's private data; None leaves the data unchanged.
    data: Mapping[str, Any] | None = None
    #: The resource's ``status_reason``; empty for the default text.
    reason: str = ""


DONE = Outcome()


@dataclass(frozen=True, slots=True)
class Signalled:
    """The result of a signal: the text for the resource's event, as in Heat, and the changed resource, if any."""

    words: str
    resource: Resource | None = None
    #: The changed deployment of the resource, if any.
    deployment: Deployment | None = None


Properties = Mapping[str, Any]


def _update_nothing(_context: Context, _resource: Resource) -> Outcome:
    return DONE


def _never(_context: Context, resource: Resource, _properties: Properties) -> Outcome:
    raise Replace(resource.name)


def _own_name(_context: Context, resource: Resource) -> Any:
    return resource.physical_id or resource.name


def _no_attribute(_context: Context, _resource: Resource, name: str) -> Any:
    raise NoSuchAttribute(name)


def _nothing_to_show(_context: Context, _resource: Resource) -> Mapping[str, Any]:
    return {}


def _no_properties(_saved: Mapping[str, Any]) -> Properties:
    return {}


def _delete_nothing(_context: Context, _resource: Resource, _saved: Mapping[str, Any]) -> None:
    return None


def _no_representation(_context: Context, _resource: Resource) -> Any:
    return None


def _itself(_context: Context, resource: Resource) -> Iterable[str]:
    return (resource.id,)


def _anything(_context: Context, _id: str) -> bool:
    return True


def _no_members(_properties: Properties) -> Iterable[tuple[str, str, Properties]]:
    return ()


def _no_template(_properties: Properties) -> tuple[str, str, Any] | None:
    return None


def _nothing(_context: Context, _resource: Resource) -> None:
    return None


def _never_stale(_context: Context, _resource: Resource) -> bool:
    return False


def _as_they_are(_context: Context, properties: Properties) -> Properties:
    return properties


def _in_place(_context: Context, _resource: Resource, _properties: Properties) -> bool:
    return False


def is_created(resource: Resource) -> bool:
    """Return whether a CREATE of the resource has completed, as far as its own status shows."""
    if resource.action in (Action.CREATE, Action.ADOPT):
        return resource.status is Status.COMPLETE
    return resource.action not in (Action.INIT, Action.DELETE)


def _until_created(_context: Context, resource: Resource, _properties: Properties) -> Action:
    return Action.UPDATE if is_created(resource) else Action.CREATE


def _no_predecessors(_context: Context, _definition: Definition, _properties: Properties) -> Iterable[str]:
    return ()


def _adopt(_context: Context, resource: Resource, _properties: Properties) -> Outcome:
    return Outcome(physical_id=resource.physical_id, data=resource.data)


def _valid(_properties: Properties) -> None:
    return None


def _no_policy(policy: Any, _properties: Properties) -> None:
    schemas.check({}, policy)


def _prepare_replacement(_context: Context, resource: Resource) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    return resource.data, {}


def _may_return(_resource: Resource, _replacement: Resource) -> bool:
    return True


class ResourceType(Struct, frozen=True, kw_only=True):
    """
    A resource type: its schema, and the functions that perform the actions on its resources.

    - ``create``, ``update`` and ``delete`` start an action. ``update`` is called only if every changed property has
      ``update_allowed``; it may raise Replace.
    - ``check`` returns the state of the action after a signal, a job or a wake-up reports.
    - All four may raise ResourceFailure. The type's private data is ``resource.data``; an Outcome replaces it.
    - ``properties`` is the schema; None accepts any properties. ``attributes`` maps known names to descriptions; None
      means that names are known only at run time.

    See the module docstring for an example.
    """

    name: str
    properties: Mapping[str, Property] | None
    attributes: Mapping[str, str] | None = field(default_factory=dict)
    create: Callable[[Context, Resource, Properties], Outcome]
    update: Callable[[Context, Resource, Properties], Outcome] = _never
    delete: Callable[[Context, Resource], Outcome] = _update_nothing
    check: Callable[[Context, Resource], Outcome] = _update_nothing
    attribute: Callable[[Context, Resource, str], Any] = _no_attribute
    #: Like ``attribute``, for types whose attributes depend on the path that follows in ``get_attr``. Takes precedence
    #: over ``attribute``.
    attribute_at: Callable[[Context, Resource, str, tuple[Any, ...]], Any] | None = None
    #: The value of the attribute ``show``, which every resource has: the object as the API represents it; None if the
    #: API has no representation.
    show: Callable[[Context, Resource], Any] = _no_representation
    #: The value of ``get_resource``.
    reference: Callable[[Context, Resource], Any] = _own_name
    #: Raises Invalid for properties that contradict each other. Values may be UNKNOWN.
    validate: Callable[[Properties], None] = _valid
    #: Raises PropertyError for an ``update_policy`` that the type does not support. Values may be UNKNOWN.
    check_policy: Callable[[Any, Properties], None] = _no_policy
    #: Applies a signal; None: the type does not accept signals.
    signal: Callable[[Context, Resource, Mapping[str, Any]], Signalled] | None = None
    #: Returns the ids of the resources whose ``check`` is called after a signal to this resource.
    waiters: Callable[[Context, Resource], Iterable[str]] = _itself
    #: The actions SUSPEND, RESUME, CHECK and SNAPSHOT. An action without an entry has no effect. Results are as for
    #: ``create``.
    actions: Mapping[Action, Callable[[Context, Resource], Outcome]] = field(default_factory=dict)
    #: Returns what the cloud saved in the last SNAPSHOT, and the properties with which an update restores it.
    saved: Callable[[Context, Resource], Mapping[str, Any]] = _nothing_to_show
    restored: Callable[[Mapping[str, Any]], Properties] = _no_properties
    #: Deletes what a SNAPSHOT saved. A job does so later; nothing waits for it.
    delete_saved: Callable[[Context, Resource, Mapping[str, Any]], None] = _delete_nothing
    #: Returns whether the project owns an object with this id; validates a template's ``external_id``.
    exists: Callable[[Context, str], bool] = _anything
    #: Refers to an existing object for a template's ``external_id``, which is the resource's ``physical_id``. Results
    #: are as for ``create``. None: ``exists`` is enough. ``stop_referring`` ends the reference; the object stays.
    refer: Callable[[Context, Resource], Outcome] | None = None
    stop_referring: Callable[[Context, Resource], None] = _nothing
    #: Called before a resource is replaced: returns the data of this resource, with what a rollback needs, and entries
    #: for the data of the one that takes its place.
    prepare_replacement: Callable[[Context, Resource], tuple[Mapping[str, Any], Mapping[str, Any]]] = (
        _prepare_replacement
    )
    #: Whether a rollback can return from the replacement (the second argument) to a resource that is as it was left.
    may_return: Callable[[Resource, Resource], bool] = _may_return
    #: Takes back what the replacement got, if a rollback returns to this resource. None: the resource gave up nothing.
    restore: Callable[[Context, Resource, Properties], Outcome] | None = None
    #: Stops an action in progress whose result is no longer needed.
    cancel: Callable[[Context, Resource], None] = _nothing
    #: Called if the resource is deleted and its physical object is kept: removes objects that served the resource only.
    retain: Callable[[Context, Resource], None] = _nothing
    #: Returns whether an input other than the properties, such as a file, has changed, so that the resource must be
    #: updated.
    is_stale: Callable[[Context, Resource], bool] = _never_stale
    #: Takes over an object that another stack abandoned; ``physical_id`` and ``data`` come from that stack.
    adopt: Callable[[Context, Resource, Properties], Outcome] = _adopt
    #: Returns current metadata in addition to the template's, such as a server's deployments.
    live_metadata: Callable[[Context, Resource], Mapping[str, Any]] = _nothing_to_show

    @property
    def has_live_metadata(self) -> bool:
        """Whether the type computes metadata at run time."""
        return self.live_metadata is not _nothing_to_show

    #: If True, the next update repeats in place what failed: it calls ``create``, or ``retry`` if ``next_action``
    #: returns UPDATE. If False, the next update replaces a failed resource.
    retries: bool = False
    #: Repeats an UPDATE that failed. None: the type repeats ``create`` only.
    retry: Callable[[Context, Resource, Properties], Outcome] | None = None
    #: Returns the action, CREATE or UPDATE, that brings an existing resource with ``retry`` to the properties.
    next_action: Callable[[Context, Resource, Properties], Action] = _until_created
    #: True for nested stacks, whose own steps repeat what failed inside, and resume what is suspended.
    repeats_inside: bool = False
    #: Replaces names in the properties by the ids that they mean at present, so that only a change of meaning counts.
    normalize: Callable[[Context, Properties], Properties] = _as_they_are
    #: Returns whether an update to the properties has to replace the resource, in addition to ``update_allowed``.
    #: Values may be UNKNOWN.
    must_replace: Callable[[Context, Resource, Properties], bool] = _in_place
    #: Returns the ids of the stack's resources that have to be gone, if they go, before a resource of this name is
    #: created with the properties, because their removal would take away what the creation brings.
    predecessors: Callable[[Context, Definition, Properties], Iterable[str]] = _no_predecessors
    #: Returns (name, type, properties) of the members that a resource with these properties creates, for validation.
    #: One representative of equal members is enough.
    members: Callable[[Properties], Iterable[tuple[str, str, Properties]]] = _no_members
    #: Returns, for a nested stack whose template a property names: the property, the name of the template's file, and
    #: the values of its parameters (a map, None or UNKNOWN). None if the name is unknown, or for all other types.
    template_file: Callable[[Properties], tuple[str, str, Any] | None] = _no_template
    #: Like ``members``, but returns all members, for a preview; None: ``members`` returns all of them.
    every_member: Callable[[Properties], Iterable[tuple[str, str, Properties]]] | None = None
    #: Returns the nested stack that a group with these properties has after its roll-out, for previews; None: the type
    #: is no group of other resources.
    group_spec: Callable[[Context, Resource, Properties], NestedSpec] | None = None
    #: Why a site without a cloud and without local servers lacks the type; empty: every site has it. The
    #: objects of such a type exist outside of Stoker.
    needs_provider: str = ""
    #: Returns the resources of a template that a resource needs in addition to those that the template states.
    implied: Rule | None = None
    #: The custom constraint that the ids of the type's objects satisfy; empty if no constraint looks them up.
    id_constraint: str = ""
    #: Whether jobs of the type act for the owner of the stack, besides those of a type that needs a provider.
    acts_for_owner: bool = False
    #: Name of the property that selects the transport of the resource's agent. The agent may need a user.
    agents_transport: str | None = None
    #: Returns the transport that the property resolves to, and whether the server runs Stoker's agent. None: the
    #: property's value, and no.
    reached_by: Callable[[Context, Resource, Properties], tuple[str, bool]] | None = None
    #: Additional names of the type; lists of types omit them.
    aliases: tuple[str, ...] = ()
    description: str = ""


def physical_name(context: Context, resource: Resource, limit: int = LONGEST_NAME) -> str:
    """
    Return Heat's name of the physical resource: stack name, resource name and a short id, at most ``limit`` characters.

    The short id derives from ``resource.id``, so a replacement has another name. An adopted object keeps its name.
    """
    return str(resource.data.get(ADOPTED_NAME) or "") or name_within(context.stack_name, resource, limit)


def name_within(stack_name: str, resource: Resource, limit: int = LONGEST_NAME) -> str:
    """
    Return the physical name of a resource of the stack ``stack_name``. Long names are shortened in the middle, as in
    Heat.
    """
    name = f"{stack_name}-{resource.name}-{_short_id(resource.id)}"
    return name if len(name) <= limit else f"{name[:2]}-{name[-(limit - 3) :]}"


def _short_id(id: str) -> str:
    """Return Heat's short id: the 60 random bits of the UUID's time field as 12 characters of base32."""
    return b32encode((UUID(id).time << 4).to_bytes(8)).decode()[:12].lower()


def target_of(context: Context, resource: Resource) -> TransportTarget:
    """Return the transport target of a resource."""
    return TransportTarget(
        resource_id=resource.id,
        resource_name=resource.name,
        name=physical_name(context, resource),
        stack_id=context.stack_id,
        stack_name=context.stack_name,
        project_id=context.project_id,
        user=User(**resource.data[USER]) if USER in resource.data else None,
    )


def wake_at(context: Context, resource: Resource, at: datetime) -> None:
    """Schedule a call of the resource's ``check``. A later call of this function replaces the scheduled time."""
    context.env.work.defer_once(context.tx, WAKE, resource.id, {"resource_id": resource.id}, at=at)


def seconds(value: Any) -> timedelta | None:
    """Convert a number of seconds; None stays None."""
    return None if value is None else timedelta(seconds=float(value))
