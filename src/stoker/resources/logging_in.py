"""
Resources whose agents log in at a Keystone: each gets a user there before anything else, and the user goes with it.

A type knows nothing of this. What it was about to do waits until the user is there; then it is done as if it had been
asked for just now.
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
)
from stoker.resources.services import Logins
from stoker.transports import Transports

#: In a resource's data: what is to be done once the user is there, and the properties it had before that.
_AWAITS = "awaits_user"


def with_logins(
    types: Mapping[str, ResourceType], transports: Transports, logins: Logins | None
) -> Mapping[str, ResourceType]:
    """``logins`` None: no users can be made, so that what needs one is refused."""
    known = {**transports.signalling, **transports.carrying}
    logging_in = frozenset(name for name, each in known.items() if getattr(each, "logs_in", False))
    defaults = {"signal_transport": transports.default_signal, "software_config_transport": transports.default_metadata}

    def wrapped(kind: ResourceType, property: str) -> ResourceType:
        return _LoggingIn(kind, property, defaults.get(property), logging_in, logins).type()

    return {
        name: wrapped(kind, kind.agents_transport) if kind.agents_transport else kind for name, kind in types.items()
    }


@dataclass(frozen=True, slots=True)
class _LoggingIn:
    kind: ResourceType
    property: str
    #: What it means that the property is not said.
    default: str | None
    transports: frozenset[str]
    logins: Logins | None

    def type(self) -> ResourceType:
        actions = {
            Action.SUSPEND: self._visit(Action.SUSPEND),
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
        if self.logins is None and isinstance(wanted, str) and wanted in self.transports:
            raise StackValidationFailed(
                f"{self.property} {wanted} needs users at Keystone, which this site makes none of: "
                "set stack_domain_admin, or take another"
            )

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self._with_user(context, resource, properties, "create")

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        awaits = resource.data.get(_AWAITS)
        if awaits is None:
            return self._with_user(context, resource, properties, "update")
        then = "create" if awaits["then"] == "create" else "update"
        return self._with_user(context, _as_it_is(resource), properties, then)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """The user that it had in another stack is that one's."""
        taken = replace(resource, data=_own(resource.data))
        outcome = self.kind.adopt(context, taken, properties)
        if not self._needs_user(taken, properties):
            return outcome
        return replace(outcome, done=False, data=self._asked(context, taken, outcome, "check"))

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return self._ended(context, resource, self.kind.delete(context, _as_it_is(resource)))

    def live_metadata(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        return self.kind.live_metadata(context, _as_it_is(resource))

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return self.kind.attribute(context, _as_it_is(resource), name)

    def check(self, context: Context, resource: Resource) -> Outcome:
        awaits = resource.data.get(_AWAITS)
        if awaits is None:
            return self._ended(context, resource, self.kind.check(context, resource))
        assert self.logins is not None
        user = self.logins.found(context.tx, resource.id)
        if user is None:
            return Outcome(done=False)
        ready = replace(resource, data={**_own(resource.data), USER: dict(user)})
        return self._ended(context, ready, self._do(context, ready, awaits))

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

    def _visit(self, action: Action) -> Callable[[Context, Resource], Outcome]:
        do = self.kind.actions.get(action, _nothing)
        return lambda context, resource: self._ended(context, resource, do(context, _as_it_is(resource)))

    def _resume(self, context: Context, resource: Resource) -> Outcome:
        """What is run then is reported by the user, which has to be able to log in again."""
        if USER not in resource.data:
            return self._visit(Action.RESUME)(context, resource)
        return Outcome(done=False, data=self._asked(context, resource, DONE, "resume"))

    def _with_user(self, context: Context, resource: Resource, properties: Properties, then: str) -> Outcome:
        if self._needs_user(resource, properties):
            return Outcome(done=False, data=self._asked(context, resource, DONE, then))
        ready = replace(resource, data=_waiting_no_more(resource.data))
        do = self.kind.create if then == "create" else self.kind.update
        return _keeping(ready, do(context, ready, properties))

    def _needs_user(self, resource: Resource, properties: Properties) -> bool:
        wanted = properties.get(self.property) or self.default
        return wanted in self.transports and USER not in resource.data

    def _asked(self, context: Context, resource: Resource, outcome: Outcome, then: str) -> dict[str, Any]:
        """The resource's data while it waits."""
        assert self.logins is not None, "validate refuses what cannot have one"
        self.logins.want(context.tx, resource.id, context.stack_id, physical_name(context, resource))
        kept = resource.data if outcome.data is None else outcome.data
        return {**kept, _AWAITS: {"then": then, "before": dict(resource.properties)}}

    def _ended(self, context: Context, resource: Resource, outcome: Outcome) -> Outcome:
        """The user rests with its resource, and goes with it."""
        if self.logins is not None and outcome.done and (USER in resource.data or _AWAITS in resource.data):
            if resource.action is Action.DELETE:
                self.logins.forget(context.tx, resource.id)
            elif resource.action is Action.SUSPEND:
                self.logins.rest(context.tx, resource.id)
        return _keeping(resource, outcome)


def _keeping(resource: Resource, outcome: Outcome) -> Outcome:
    """What a type keeps for itself takes nothing away from what is kept here."""
    data = resource.data if outcome.data is None else outcome.data
    user = {USER: resource.data[USER]} if USER in resource.data else {}
    return replace(outcome, data={**data, **user})


def _own(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in (USER, _AWAITS)}


def _waiting_no_more(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != _AWAITS}


def _as_it_is(resource: Resource) -> Resource:
    """What it waits to be is not what it is: an agent that is told so too early finds no way back."""
    awaits = resource.data.get(_AWAITS)
    if awaits is None:
        return resource
    properties = awaits["before"] if awaits["then"] == "update" else resource.properties
    return replace(resource, properties=properties, data=_waiting_no_more(resource.data))


def _nothing(_context: Context, _resource: Resource) -> Outcome:
    return DONE
