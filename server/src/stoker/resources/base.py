"""
The interface of resource types: ``ResourceType`` and the values that its methods take and return.

Every method runs inside a transaction and may run twice, after a crash or a deadlock. Therefore a method acts only
through ``context.tx``: it performs no other I/O, and an effect outside the database is a job that the method defers.

A minimal resource type is a class in a module of ``stoker.types``, or of an installed package:

    class Shout(ResourceType):
        name = "Example::Shout"
        properties = {"text": Property(kind="string", required=True)}
        attributes = {"shouted": "The text in upper case."}

        def create(self, context, resource, properties):
            shouted = properties["text"].upper()
            return Outcome(physical_id=physical_name(context, resource), data={"shouted": shouted})

An attribute is the entry of the resource's data with its name, unless the type replaces ``attribute``.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from msgspec import Struct

from stoker.backends.keystone_users import KeystoneUsers
from stoker.backends.provider import Provider
from stoker.backends.remote_heat import RemoteHeatClient
from stoker.deployments.owners import DeploymentEnv
from stoker.hot import Definition, select
from stoker.model.deployment import Deployment
from stoker.model.errors import EntityNotFound
from stoker.model.stack import Action, Resource, Stack, Status
from stoker.resources import properties as schemas
from stoker.resources.properties import Property
from stoker.servers.compute import Compute
from stoker.servers.keys import Keys
from stoker.store import resources
from stoker.store.tx import Tx
from stoker.transports.base import TransportTarget, User


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceEnv(DeploymentEnv):
    """The services that resource types use, for all calls of one process."""

    #: None if no provider is enabled.
    compute: Compute | None
    remote_heats: RemoteHeatClient
    #: Returns the id of the project that a policy names by its id or name. Raises Invalid.
    find_project: Callable[[Tx, str], str]
    #: Agent keys, with which published documents are signed.
    keys: Keys
    #: What the provider of a cloud offers; nothing without a provider.
    provider: Provider = Provider()
    #: None if users are Stoker's own, or Stoker cannot create users at Keystone.
    stack_users: KeystoneUsers | None = None
    #: Whether agents may have to wait for a user at Keystone, or for a URL that an external Zaqar signs.
    agents_wait: bool = False

    @property
    def has_provider(self) -> bool:
        """Whether the site has a cloud or local servers."""
        return self.compute is not None or bool(self.provider.offered)


#: Kind of the job that calls a resource's ``check`` at a given time; its arguments: ``resource_id``.
WAKE = "resource.wake"


#: Key of ``Resource.data`` for the resource's Keystone user: ``user_id``, ``project_id``, ``domain_id``.
USER = "stack_user"
#: Key of ``Resource.data`` for the name of the object that the resource has adopted.
ADOPTED_NAME = "adopted_name"
#: Key of a resource's data: whether the deletion of the resource leaves its object.
KEEPS_OBJECT = "keeps_object"
#: Limit of every wait in seconds: ten years. The limit avoids dates beyond the calendar.
LONGEST_WAIT = 315_360_000
#: Limit of a physical name in characters, unless the physical resource has a lower limit.
LONGEST_NAME = 255


class ResourceFailure(Exception):
    """
    The resource's action failed. The message is the reason after ``resources.<name>: ``, ``kind`` is Heat's type of the
    error, ``outcome`` has the id and the data to store, if any.
    """

    outcome: Outcome | None = None

    def __init__(self, message: str = "", kind: str = "Error") -> None:
        super().__init__(message)
        self.kind = kind


class AdoptionFailure(ResourceFailure):
    """The object that a resource should adopt does not exist, or belongs to a stack. ``what``: the kind of object."""

    def __init__(self, what: str, id: str | None) -> None:
        super().__init__(f"The {what} ({id}) cannot be adopted: it does not exist, or belongs to a stack.")


class NestedFailure(ResourceFailure):
    """A resource inside has failed. The message continues the path: ``.resources.<name>: ``."""


class Replace(Exception):
    """Raised by ``update`` if the resource cannot be updated in place and must be replaced."""


class NoSuchAttribute(Exception):
    """The type has no such attribute."""


class Context(Struct, frozen=True):
    """The transaction, the platform and the stack for one call of a method of a resource type."""

    tx: Tx
    env: ResourceEnv
    stack_id: str
    stack_name: str
    project_id: str
    #: The stack's row as the session began.
    stack: Stack
    #: The ``stoker.stacks.engine.Engine``, which is above this package, for types that operate stacks.
    engine: Any
    #: The deployment that this transaction has just changed, so that its resource does not read it again.
    changed: Deployment | None = None


class Outcome(Struct, frozen=True):
    """The result of an action. Not ``done``: a signal or a job reports, and then the engine calls ``check``."""

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


Properties = Mapping[str, Any]


def is_created(resource: Resource) -> bool:
    """Return whether a CREATE of the resource has completed, as far as its own status shows."""
    if resource.action in (Action.CREATE, Action.ADOPT):
        return resource.status is Status.COMPLETE
    return resource.action not in (Action.INIT, Action.DELETE)


class ResourceType:
    """
    A resource type: its schema, what the engine has to know of it, and its actions.

    A type is a subclass with a ``name``; its instance has no state. The actions:

    - ``create``, ``update``, ``delete`` and ``act`` start an action. ``update`` is called only if every changed
      property has ``update_allowed``; it may raise Replace.
    - ``check`` returns the state of the action after a signal, a job or a wake-up reports.
    - All of them may raise ResourceFailure. The type's private data is ``resource.data``; an Outcome replaces it.

    See the module docstring for an example, and ``TakesSignals``, ``TakesBack``, ``SavesState`` and ``NestedType`` for
    what only some types do.
    """

    name = ""
    #: Additional names of the type; lists of types omit them.
    aliases: tuple[str, ...] = ()
    description = ""
    #: None accepts any properties.
    properties: Mapping[str, Property] | None = MappingProxyType({})
    #: Descriptions by name; None means that names are known only at run time.
    attributes: Mapping[str, str] | None = MappingProxyType({})
    #: Those of SUSPEND, RESUME, CHECK and SNAPSHOT that have an effect, which ``act`` starts.
    actions: Collection[Action] = ()

    #: If True, the next update repeats in place what failed, by ``create``. If False, it replaces a failed resource.
    retries = False
    #: If True, a failed UPDATE is repeated too, by ``retry``, unless ``next_action`` returns CREATE.
    repeats_update = False
    #: True for nested stacks, whose own steps repeat what failed inside, and resume what is suspended.
    is_nested = False
    #: Whether the type computes metadata at run time.
    has_live_metadata = False
    #: Why a site without a cloud and without local servers lacks the type; empty: every site has it. The objects of
    #: such a type exist outside of Stoker.
    needs_provider = ""
    #: Whether jobs of the type act for the owner of the stack, besides those of a type that needs a provider.
    acts_for_owner = False
    #: Name of the property that selects the transport of the resource's agent. The agent may need a user.
    agents_transport: str | None = None

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the physical resource, or continue a creation that failed."""
        raise NotImplementedError(self.name)

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change the physical resource from ``resource.properties`` to ``properties``."""
        raise Replace(resource.name)

    def retry(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Repeat an UPDATE that failed (``repeats_update``)."""
        return self.update(context, resource, properties)

    def delete(self, context: Context, resource: Resource) -> Outcome:
        """Delete the physical resource."""
        return DONE

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        """Start one of the ``actions``."""
        return DONE

    def check(self, context: Context, resource: Resource) -> Outcome:
        """Return the state of the action in progress."""
        return DONE

    def cancel(self, context: Context, resource: Resource) -> None:
        """Stop an action in progress whose result is no longer needed."""

    def retain(self, context: Context, resource: Resource) -> None:
        """Remove objects that served the resource only, which is deleted while its physical object stays."""

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """
        Take over an object that another stack abandoned, which had ``physical_id`` and ``data``.

        Raises AdoptionFailure if another resource has the object, which the deletion of either would remove.
        """
        holders = resources.all_with_physical_id(context.tx, resource.physical_id or "", context.project_id)
        if any(not holder.definition.get("external_id") for holder in holders):
            raise AdoptionFailure(resource.type, resource.physical_id)
        return Outcome(physical_id=resource.physical_id, data=resource.data)

    def exists(self, context: Context, id: str) -> bool:
        """Return whether the project owns an object with this id, for a template's ``external_id``."""
        return True

    def refer(self, context: Context, resource: Resource) -> Outcome:
        """Refer to the existing object of a template's ``external_id``, the ``physical_id``. Raises EntityNotFound."""
        if not self.exists(context, resource.physical_id or ""):
            raise EntityNotFound(f"The {resource.type} ({resource.physical_id}) could not be found.")
        return Outcome(physical_id=resource.physical_id)

    def stop_referring(self, context: Context, resource: Resource) -> None:
        """End the reference to an object, which stays."""

    def attribute_names(self, context: Context, resource: Resource) -> Iterable[str]:
        """Return the names of all attributes of an existing resource, as far as they are known."""
        return self.attributes or ()

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        """Return one of ``attributes``; any attribute, if these are known only at run time. Raises NoSuchAttribute."""
        return resource.data.get(name)

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        """Return the part of an attribute at the path that follows in ``get_attr``. Raises NoSuchAttribute."""
        if self.attributes is not None and name not in self.attributes:
            raise NoSuchAttribute(name)
        value = self.attribute(context, resource, name)
        return select(value, path) if path else value

    def show(self, context: Context, resource: Resource) -> Any:
        """Return the attribute ``show``, which every resource has: the object as its API represents it, if it does."""
        return None

    def reference(self, context: Context, resource: Resource) -> Any:
        """Return the value of ``get_resource``."""
        return resource.physical_id or resource.name

    def live_metadata(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        """Return current metadata in addition to the template's, such as a server's deployments."""
        return {}

    def validate(self, properties: Properties) -> None:
        """Raise Invalid for properties that contradict each other. Values may be UNKNOWN."""

    def check_policy(self, policy: Any, properties: Properties) -> None:
        """Raise PropertyError for an ``update_policy`` that the type does not support. Values may be UNKNOWN."""
        schemas.check({}, policy)

    def normalize(self, context: Context, properties: Properties) -> Properties:
        """Return the properties with present ids in place of names, so that only a change of meaning counts."""
        return properties

    def is_stale(self, context: Context, resource: Resource) -> bool:
        """Return whether an input other than the properties, such as a file, requires an update."""
        return False

    def must_replace(self, context: Context, resource: Resource, properties: Properties) -> bool:
        """Return whether an update to the properties, which may be UNKNOWN, has to replace the resource."""
        return False

    def next_action(self, context: Context, resource: Resource, properties: Properties) -> Action:
        """Return the action, CREATE or UPDATE, that brings an existing resource to the properties."""
        return Action.UPDATE if is_created(resource) else Action.CREATE

    def predecessors(self, context: Context, definition: Definition, properties: Properties) -> Iterable[str]:
        """Return the ids of resources that, if they go, must go first: they would take away what this one brings."""
        return ()

    def may_return(self, resource: Resource, replacement: Resource) -> bool:
        """Return whether a rollback can return from the replacement to a resource that is as it was left."""
        return True


class TakesSignals:
    """A resource type that accepts signals."""

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        """Apply a signal. Raises Invalid."""
        raise NotImplementedError

    def waiters(self, context: Context, resource: Resource) -> Iterable[str]:
        """Return the ids of the resources that a signal to this resource wakes, so that ``check`` is called."""
        return ()


class KnowsAgent:
    """A resource type with ``agents_transport`` whose agent and transport are known only when the server exists."""

    def reached_by(self, context: Context, resource: Resource, properties: Properties) -> tuple[str, bool]:
        """Return the name of the transport, and whether the server runs Stoker's agent."""
        raise NotImplementedError


class TakesBack:
    """A resource type whose resource gives something to its replacement, and takes it back when a rollback returns."""

    def prepare_replacement(self, context: Context, resource: Resource) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the data of a resource that is replaced, and entries for the data of its replacement."""
        raise NotImplementedError

    def restore(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take back what the replacement got."""
        raise NotImplementedError


class SavesState:
    """A resource type with the action SNAPSHOT, which saves something at a cloud."""

    def saved(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        """Return what the last SNAPSHOT saved."""
        raise NotImplementedError

    def restored(self, saved: Mapping[str, Any]) -> Properties:
        """Return the properties with which an update restores what was saved."""
        raise NotImplementedError

    def delete_saved(self, context: Context, resource: Resource, saved: Mapping[str, Any]) -> None:
        """Request the deletion of what a SNAPSHOT saved. Nothing waits for it."""
        raise NotImplementedError


def physical_name(context: Context, resource: Resource, limit: int = LONGEST_NAME) -> str:
    """
    Return Heat's name of the physical resource, at most ``limit`` characters. Its short id derives from
    ``resource.id``, so a replacement has another name. An adopted object keeps its name.
    """
    return str(resource.data.get(ADOPTED_NAME) or "") or name_within(context.stack_name, resource, limit)


def name_within(stack_name: str, resource: Resource, limit: int = LONGEST_NAME) -> str:
    """Return the physical name of a resource of a stack. As in Heat, long names are shortened in the middle."""
    # Heat's short id: the 60 random bits of the UUID's time field as 12 characters of base32.
    short_id = b32encode((UUID(resource.id).time << 4).to_bytes(8)).decode()[:12].lower()
    name = f"{stack_name}-{resource.name}-{short_id}"
    return name if len(name) <= limit else f"{name[:2]}-{name[-(limit - 3) :]}"


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


def wait_until(context: Context, resource: Resource, until: datetime) -> Outcome:
    """Return the outcome of an action that waits; the resource's ``check`` is called at ``until``."""
    wake_at(context, resource, until)
    return Outcome(False, data={"until": until.isoformat()})


def is_waiting(context: Context, resource: Resource) -> bool:
    """Return whether the time of ``wait_until`` is still to come."""
    until = resource.data.get("until")
    return until is not None and context.tx.now < datetime.fromisoformat(until)
