"""
Provisioning of what an agent needs before its resource can start: a Keystone user, or a signed URL.

The user is deleted with the resource. With Stoker's agent, a URL that an external messaging service signs replaces the
user.

Resource types do not know of this provisioning. ``with_stack_users`` wraps a type: an action waits until the user or
the URL exists, and then runs as if it had just been requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import (
    DONE,
    USER,
    Context,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    physical_name,
    target_of,
)
from stoker.resources.env import StackUsers
from stoker.transports import Transports
from stoker.transports.base import NeedsUser, PresignedQueue, Queues

#: Key of ``Resource.data``: the action that waits, the properties before that action, and what the action waits for.
_AWAITS = "awaits_user"
_URL = "url"


def with_stack_users(
    types: Mapping[str, ResourceType], transports: Transports, queues: Queues, logins: StackUsers | None, *, users: bool
) -> Mapping[str, ResourceType]:
    """
    Wrap the types whose agents may need a user.

    ``users``: Keystone stores the users. ``logins`` None: Stoker cannot create users in Keystone, so resources that
    need one are refused.
    """
    by_name = {**transports.signal_transports, **transports.metadata_transports}
    logging_in = frozenset(
        name for name, transport in by_name.items() if isinstance(transport, NeedsUser) and transport.logs_in
    )
    opening = {
        name: transport.signed_method for name, transport in by_name.items() if isinstance(transport, PresignedQueue)
    }
    defaults = {"signal_transport": transports.default_signal, "software_config_transport": transports.default_metadata}

    def wrapped(kind: ResourceType, property: str) -> ResourceType:
        return _UserProvisioning(
            kind, property, defaults.get(property), logging_in, opening, queues, logins, users
        ).type()

    return {
        name: wrapped(kind, kind.agents_transport) if kind.agents_transport else kind for name, kind in types.items()
    }


@dataclass(frozen=True, slots=True)
class _UserProvisioning:
    """Wraps one resource type."""

    kind: ResourceType
    property: str
    #: Value of the property if the template does not set it.
    default: str | None
    transports: frozenset[str]
    #: Transports for which Stoker's agent needs no login, and the method that the signed URL permits.
    opening: Mapping[str, str]
    queues: Queues
    logins: StackUsers | None
    users: bool

    def type(self) -> ResourceType:
        actions = {
            Action.SUSPEND: self._act(Action.SUSPEND),
            Action.RESUME: self._resume,
        }
        return replace(
            self.kind,
            live_metadata=self.live_metadata if self.kind.has_live_metadata else self.kind.live_metadata,
            attribute=self.attribute,
            create=self.create,
            update=self.update,
            adopt=self.adopt,
            delete=self.delete,
            check=self.check,
            validate=self.validate,
            actions={**self.kind.actions, **actions},
        )

    def validate(self, properties: Properties) -> None:
        self.kind.validate(properties)
        wanted = properties.get(self.property) or self.default
        needing = self.transports
        if self.kind.reached_by is not None:  # the agent is known only when the server exists
            needing -= self.opening.keys()
        if self.logins is None and self.users and isinstance(wanted, str) and wanted in needing:
            raise StackValidationFailed(self._no_users(wanted))

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self._with_user(context, resource, properties, "create")

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        awaits = resource.data.get(_AWAITS)
        if awaits is None:
            return self._with_user(context, resource, properties, "update")
        then = "create" if awaits["then"] == "create" else "update"
        return self._with_user(context, _as_it_is(resource), properties, then)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take over the resource without the user, which belongs to the former stack."""
        taken = replace(resource, data=_own(resource.data))
        outcome = self.kind.adopt(context, taken, properties)
        lacking = self._missing_user(context, taken, properties)
        return self._await_user(context, taken, outcome, "check", lacking) if lacking else outcome

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return self._finish(context, resource, self.kind.delete(context, _as_it_is(resource)))

    def live_metadata(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        return self.kind.live_metadata(context, _as_it_is(resource))

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return self.kind.attribute(context, _as_it_is(resource), name)

    def check(self, context: Context, resource: Resource) -> Outcome:
        awaits = resource.data.get(_AWAITS)
        if awaits is None:
            return self._finish(context, resource, self.kind.check(context, resource))
        user = self.logins.find(context.tx, resource.id) if self.logins is not None else None
        own = _own(resource.data)
        ready = replace(resource, data={**own, USER: dict(user)} if user else own)
        lacking = self._missing_user(context, ready, ready.properties)
        if lacking and lacking == awaits.get("for", USER):
            return Outcome(done=False)
        if lacking:  # the service refused to sign a URL, so the agent needs a user
            return self._await_user(context, resource, DONE, awaits["then"], lacking)
        return self._finish(context, ready, self._do(context, ready, awaits))

    def _do(self, context: Context, ready: Resource, awaits: Mapping[str, Any]) -> Outcome:
        match awaits["then"]:
            case "create":
                return self.kind.create(context, ready, ready.properties)
            case "update":
                try:
                    return self.kind.update(context, replace(ready, properties=awaits["before"]), ready.properties)
                except Replace:
                    raise ResourceFailure("it has to be replaced: update the stack again") from None
            case "resume":
                return self.kind.actions.get(Action.RESUME, _nothing)(context, ready)
            case _:
                return self.kind.check(context, ready)

    def _act(self, action: Action) -> Callable[[Context, Resource], Outcome]:
        do = self.kind.actions.get(action, _nothing)
        return lambda context, resource: self._finish(context, resource, do(context, _as_it_is(resource)))

    def _resume(self, context: Context, resource: Resource) -> Outcome:
        """Enable the user first, because the agent needs it to report the run."""
        if USER not in resource.data:
            return self._act(Action.RESUME)(context, resource)
        return self._await_user(context, resource, DONE, "resume", USER)

    def _with_user(self, context: Context, resource: Resource, properties: Properties, then: str) -> Outcome:
        lacking = self._missing_user(context, resource, properties)
        if lacking:
            return self._await_user(context, resource, DONE, then, lacking)
        ready = replace(resource, data=_without_wait(resource.data))
        do = self.kind.create if then == "create" else self.kind.update
        return _keep_markers(ready, do(context, ready, properties))

    def _missing_user(self, context: Context, resource: Resource, properties: Properties) -> str | None:
        """
        Return what the agent needs and lacks, a URL or a user; None if nothing. Raises ResourceFailure if there can be
        no user.
        """
        if self.kind.reached_by is not None:
            name, own_agent = self.kind.reached_by(context, resource, properties)
        else:
            name, own_agent = str(properties.get(self.property) or self.default), False
        if name not in self.transports:
            return None
        if own_agent and name in self.opening:
            target, method = target_of(context, resource), self.opening[name]
            if not self.queues.sign(context.tx, target, method):
                return _URL
            if self.queues.signed(context.tx, target, method) is not None:
                return None
        if not self.users or USER in resource.data:
            return None
        if self.logins is None:
            raise ResourceFailure(self._no_users(name))
        return USER

    def _await_user(self, context: Context, resource: Resource, outcome: Outcome, then: str, lacking: str) -> Outcome:
        """Store the waiting action and request the user. ``_missing_user`` has already requested the URL."""
        if lacking == USER:
            assert self.logins is not None, "what cannot have one was refused"
            self.logins.ensure(context.tx, resource.id, context.stack_id, physical_name(context, resource))
        kept = resource.data if outcome.data is None else outcome.data
        awaits = kept.get(_AWAITS) or {"then": then, "before": dict(resource.properties)}
        data = {**kept, _AWAITS: {**awaits, "for": lacking}}
        reason = "Waiting for the messaging service to sign a URL for the agent" if lacking == _URL else ""
        return replace(outcome, done=False, data=data, reason=reason)

    def _no_users(self, transport: str) -> str:
        return (
            f"{self.property} {transport} needs users at Keystone, which this site makes none of: "
            "set stack_domain_admin, or take another"
        )

    def _finish(self, context: Context, resource: Resource, outcome: Outcome) -> Outcome:
        """
        Disable the user when the resource is suspended, and delete it with the resource.

        A queue that was created only for a signed URL is deleted too.
        """
        if outcome.done and resource.action is Action.DELETE and resource.data.get(_AWAITS, {}).get("for") == _URL:
            self.queues.close(context.tx, target_of(context, resource))
        if self.logins is not None and outcome.done and (USER in resource.data or _AWAITS in resource.data):
            if resource.action is Action.DELETE:
                self.logins.drop(context.tx, resource.id)
            elif resource.action is Action.SUSPEND:
                self.logins.disable(context.tx, resource.id)
        return _keep_markers(resource, outcome)


def _keep_markers(resource: Resource, outcome: Outcome) -> Outcome:
    """Keep the user's entry if the type replaces the resource's data."""
    data = resource.data if outcome.data is None else outcome.data
    user = {USER: resource.data[USER]} if USER in resource.data else {}
    return replace(outcome, data={**data, **user})


def _own(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in (USER, _AWAITS)}


def _without_wait(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != _AWAITS}


def _as_it_is(resource: Resource) -> Resource:
    """
    Return the resource without the waiting change.

    An agent that received the new configuration before it can log in would lose its connection.
    """
    awaits = resource.data.get(_AWAITS)
    if awaits is None:
        return resource
    properties = awaits["before"] if awaits["then"] == "update" else resource.properties
    return replace(resource, properties=properties, data=_without_wait(resource.data))


def _nothing(_context: Context, _resource: Resource) -> Outcome:
    return DONE
