"""Provisioning of what an agent needs before its resource can start: a Keystone user, or a signed URL.

The user is deleted with the resource. With Stoker's agent, a URL that an external messaging service signs replaces the
user. Resource types do not know of this provisioning. ``with_stack_users`` specializes them: an action waits until the
user or the URL exists, and then runs as if it had just been requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.backends.keystone_users import KeystoneUsers
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import (
    DONE,
    USER,
    Context,
    KnowsAgent,
    Outcome,
    Properties,
    Replace,
    ResourceFailure,
    ResourceType,
    physical_name,
    specialize,
    target_of,
)
from stoker.transports import Transports
from stoker.transports.base import NeedsUser, Queues, has_presigned_queue

#: The need of a signed URL. ``USER`` is the need of a user.
URL = "url"


@dataclass(frozen=True, slots=True)
class AgentAccess:
    """The needs of the agents of one resource type, which depend on the transport of the resource."""

    kind: ResourceType
    #: The property that names the transport.
    property: str
    #: Value of the property if the template does not set it.
    default: str | None
    #: Transports that need a login.
    login_transports: frozenset[str]
    #: Transports for which Stoker's agent needs no login, and the method that the signed URL permits.
    signed_methods: Mapping[str, str]
    queues: Queues
    #: None if Stoker cannot create users.
    stack_users: KeystoneUsers | None
    #: Whether Keystone stores the users. Stoker's own users need no provisioning.
    users_in_keystone: bool

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed if the transport needs a user and Stoker cannot create users."""
        transport = properties.get(self.property) or self.default
        transports = self.login_transports
        if isinstance(self.kind, KnowsAgent):  # the agent is known only when the server exists
            transports -= self.signed_methods.keys()
        is_impossible = self.users_in_keystone and self.stack_users is None
        if is_impossible and isinstance(transport, str) and transport in transports:
            raise StackValidationFailed(self._describe_refusal(transport))

    def find_need(self, context: Context, resource: Resource, properties: Properties) -> str | None:
        """
        Return what the agent still needs, ``URL`` or ``USER``; None if nothing. Requests a URL that is needed.

        Raises ResourceFailure if the agent needs a user and Stoker cannot create users.
        """
        if isinstance(self.kind, KnowsAgent):
            name, own_agent = self.kind.reached_by(context, resource, properties)
        else:
            name, own_agent = str(properties.get(self.property) or self.default), False
        if name not in self.login_transports:
            return None
        if own_agent and name in self.signed_methods:
            target, method = target_of(context, resource), self.signed_methods[name]
            if not self.queues.sign(context.tx, target, method):
                return URL
            if self.queues.signed(context.tx, target, method) is not None:
                return None
        if not self.users_in_keystone or USER in resource.data:
            return None
        if self.stack_users is None:
            raise ResourceFailure(self._describe_refusal(name))
        return USER

    def request_user(self, context: Context, resource: Resource) -> None:
        """Request an enabled user. Stoker calls the resource's ``check`` once the user exists."""
        assert self.stack_users is not None, "find_need refuses a resource that cannot have a user"
        self.stack_users.ensure(context.tx, resource.id, context.stack_id, physical_name(context, resource))

    def find_user(self, context: Context, resource: Resource) -> dict[str, Any] | None:
        """Return the ids of the resource's user if it exists and is enabled; otherwise None."""
        user = self.stack_users.find(context.tx, resource.id) if self.stack_users is not None else None
        return dict(user) if user else None

    def disable(self, context: Context, resource: Resource) -> None:
        """Disable the resource's user."""
        if self.stack_users is not None:
            self.stack_users.disable(context.tx, resource.id)

    def delete(self, context: Context, resource: Resource, need: str | None) -> None:
        """Delete the resource's user. With the need ``URL``, the queue exists only for a signed URL: delete it too."""
        if need == URL:
            self.queues.close(context.tx, target_of(context, resource))
        if self.stack_users is not None:
            self.stack_users.drop(context.tx, resource.id)

    def _describe_refusal(self, transport: str) -> str:
        return (
            f"{self.property} {transport} needs users at Keystone, which this site makes none of: "
            "set stack_domain_cloud, or take another"
        )


#: Key of ``Resource.data``: the action that waits, the properties before that action, and what the action waits for.
_AWAITS = "awaits_user"


def with_stack_users(
    types: Mapping[str, ResourceType],
    transports: Transports,
    queues: Queues,
    logins: KeystoneUsers | None,
    *,
    users: bool,
) -> Mapping[str, ResourceType]:
    """
    Specialize the types whose agents may need a user.

    ``users``: Keystone stores the users. ``logins`` None: Stoker cannot create users in Keystone, so resources that
    need one are refused.
    """
    by_name = {**transports.signal_transports, **transports.metadata_transports}
    login_transports = frozenset(
        name for name, transport in by_name.items() if isinstance(transport, NeedsUser) and transport.logs_in
    )
    signed_methods = {
        name: transport.signed_method for name, transport in by_name.items() if has_presigned_queue(transport)
    }
    defaults = {"signal_transport": transports.default_signal, "software_config_transport": transports.default_metadata}

    def wrap(kind: ResourceType, property: str) -> ResourceType:
        default = defaults.get(property)
        access = AgentAccess(kind, property, default, login_transports, signed_methods, queues, logins, users)
        actions = {*kind.actions, Action.SUSPEND, Action.RESUME}
        return specialize(kind, _AwaitsAccess, access=access, actions=actions)

    return {name: wrap(kind, kind.agents_transport) if kind.agents_transport else kind for name, kind in types.items()}


class _AwaitsAccess(ResourceType):
    """Makes an action wait until the agent of the resource has access."""

    access: AgentAccess

    def validate(self, properties: Properties) -> None:
        super().validate(properties)
        self.access.validate(properties)

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        return self._run_with_access(context, resource, properties, "create")

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        awaits = resource.data.get(_AWAITS)
        if awaits is None:
            return self._run_with_access(context, resource, properties, "update")
        then = "create" if awaits["then"] == "create" else "update"
        return self._run_with_access(context, _as_it_is(resource), properties, then)

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take over the resource without the user, which belongs to the former stack."""
        resource = replace(resource, data=_own(resource.data))
        outcome = super().adopt(context, resource, properties)
        need = self.access.find_need(context, resource, properties)
        return self._await_access(context, resource, outcome, "check", need) if need else outcome

    def delete(self, context: Context, resource: Resource) -> Outcome:
        return self._finish(context, resource, super().delete(context, _as_it_is(resource)))

    def live_metadata(self, context: Context, resource: Resource) -> Mapping[str, Any]:
        return super().live_metadata(context, _as_it_is(resource))

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return super().attribute(context, _as_it_is(resource), name)

    def check(self, context: Context, resource: Resource) -> Outcome:
        awaits = resource.data.get(_AWAITS)
        if awaits is None:
            return self._finish(context, resource, super().check(context, resource))
        user = self.access.find_user(context, resource)
        own = _own(resource.data)
        ready = replace(resource, data={**own, USER: user} if user else own)
        need = self.access.find_need(context, ready, ready.properties)
        if need and need == awaits.get("for", USER):
            return Outcome(done=False)
        if need:  # the service refused to sign a URL, so the agent needs a user
            return self._await_access(context, resource, DONE, awaits["then"], need)
        return self._finish(context, ready, self._run_waiting(context, ready, awaits))

    def act(self, context: Context, resource: Resource, action: Action) -> Outcome:
        """Start the action. RESUME waits until the user is enabled, because the agent needs it to report the run."""
        if action is Action.RESUME and USER in resource.data:
            return self._await_access(context, resource, DONE, "resume", USER)
        return self._finish(context, resource, super().act(context, _as_it_is(resource), action))

    def _run_with_access(self, context: Context, resource: Resource, properties: Properties, then: str) -> Outcome:
        need = self.access.find_need(context, resource, properties)
        if need:
            return self._await_access(context, resource, DONE, then, need)
        ready = replace(resource, data=_without_wait(resource.data))
        do = super().create if then == "create" else super().update
        return _keep_markers(ready, do(context, ready, properties))

    def _await_access(self, context: Context, resource: Resource, outcome: Outcome, then: str, need: str) -> Outcome:
        """Store the waiting action and request the user. ``find_need`` has already requested a URL."""
        if need == USER:
            self.access.request_user(context, resource)
        data = resource.data if outcome.data is None else outcome.data
        awaits = data.get(_AWAITS) or {"then": then, "before": dict(resource.properties)}
        reason = "Waiting for the messaging service to sign a URL for the agent" if need == URL else ""
        return replace(outcome, done=False, data={**data, _AWAITS: {**awaits, "for": need}}, reason=reason)

    def _finish(self, context: Context, resource: Resource, outcome: Outcome) -> Outcome:
        """Disable the user when the resource is suspended, and delete it with the resource."""
        if outcome.done and (USER in resource.data or _AWAITS in resource.data):
            if resource.action is Action.DELETE:
                self.access.delete(context, resource, resource.data.get(_AWAITS, {}).get("for"))
            elif resource.action is Action.SUSPEND:
                self.access.disable(context, resource)
        return _keep_markers(resource, outcome)

    def _run_waiting(self, context: Context, ready: Resource, awaits: Mapping[str, Any]) -> Outcome:
        """Run the action that waited for the access."""
        match awaits["then"]:
            case "create":
                return super().create(context, ready, ready.properties)
            case "update":
                try:
                    return super().update(context, replace(ready, properties=awaits["before"]), ready.properties)
                except Replace:
                    raise ResourceFailure("it has to be replaced: update the stack again") from None
            case "resume":
                return super().act(context, ready, Action.RESUME)
            case _:
                return super().check(context, ready)


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
