"""
Resources whose agents have to be given something first: a user at a Keystone to log in as, which goes with the
resource; or, with an agent of ours, a URL that a messaging service elsewhere signs, and then no user.

A type knows nothing of this. What it was about to do waits until that is there; then it is done as if it had been
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
    party_of,
    physical_name,
)
from stoker.resources.services import Logins
from stoker.transports import Transports
from stoker.transports.base import LoggingIn, Opening, Queues

#: In a resource's data: what is to be done once it has what its agent needs, and the properties it had before that.
_AWAITS = "awaits_user"
_URL = "url"


def with_logins(
    types: Mapping[str, ResourceType], transports: Transports, queues: Queues, logins: Logins | None, *, users: bool
) -> Mapping[str, ResourceType]:
    """``users``: they are kept at a Keystone. ``logins`` None: none can be made there, so what needs one is refused."""
    known = {**transports.signalling, **transports.carrying}
    logging_in = frozenset(name for name, each in known.items() if isinstance(each, LoggingIn) and each.logs_in)
    opening = {name: each.opens_to for name, each in known.items() if isinstance(each, Opening)}
    defaults = {"signal_transport": transports.default_signal, "software_config_transport": transports.default_metadata}

    def wrapped(kind: ResourceType, property: str) -> ResourceType:
        return _LoggingIn(kind, property, defaults.get(property), logging_in, opening, queues, logins, users).type()

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
    #: Those that our agents need no login for, and what a signed URL opens for them.
    opening: Mapping[str, str]
    queues: Queues
    logins: Logins | None
    users: bool

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
        needing = self.transports
        if self.kind.reached_by is not None:  # whose agent it is, is not known before there is a server
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
        """The user that it had in another stack is that one's."""
        taken = replace(resource, data=_own(resource.data))
        outcome = self.kind.adopt(context, taken, properties)
        lacking = self._lacking(context, taken, properties)
        return self._asked(context, taken, outcome, "check", lacking) if lacking else outcome

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
        user = self.logins.found(context.tx, resource.id) if self.logins is not None else None
        own = _own(resource.data)
        ready = replace(resource, data={**own, USER: dict(user)} if user else own)
        lacking = self._lacking(context, ready, ready.properties)
        if lacking and lacking == awaits.get("for", USER):
            return Outcome(done=False)
        if lacking:  # a URL was refused it
            return self._asked(context, resource, DONE, awaits["then"], lacking)
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
        return self._asked(context, resource, DONE, "resume", USER)

    def _with_user(self, context: Context, resource: Resource, properties: Properties, then: str) -> Outcome:
        lacking = self._lacking(context, resource, properties)
        if lacking:
            return self._asked(context, resource, DONE, then, lacking)
        ready = replace(resource, data=_waiting_no_more(resource.data))
        do = self.kind.create if then == "create" else self.kind.update
        return _keeping(ready, do(context, ready, properties))

    def _lacking(self, context: Context, resource: Resource, properties: Properties) -> str | None:
        """What its agent needs and has not got: a URL, or a user. Raises ResourceFailure when that cannot be."""
        if self.kind.reached_by is not None:
            name, own_agent = self.kind.reached_by(context, resource, properties)
        else:
            name, own_agent = str(properties.get(self.property) or self.default), False
        if name not in self.transports:
            return None
        if own_agent and name in self.opening:
            party, method = party_of(context, resource), self.opening[name]
            if not self.queues.sign(context.tx, party, method):
                return _URL
            if self.queues.signed(context.tx, party, method) is not None:
                return None
        if not self.users or USER in resource.data:
            return None
        if self.logins is None:
            raise ResourceFailure(self._no_users(name))
        return USER

    def _asked(self, context: Context, resource: Resource, outcome: Outcome, then: str, lacking: str) -> Outcome:
        """It waits; what the URL is for has been asked for with the question whether it is there."""
        if lacking == USER:
            assert self.logins is not None, "what cannot have one was refused"
            self.logins.want(context.tx, resource.id, context.stack_id, physical_name(context, resource))
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

    def _ended(self, context: Context, resource: Resource, outcome: Outcome) -> Outcome:
        """The user rests with its resource, and goes with it; so does a queue that was only asked for."""
        if outcome.done and resource.action is Action.DELETE and resource.data.get(_AWAITS, {}).get("for") == _URL:
            self.queues.close(context.tx, party_of(context, resource))
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
