"""What the agent of a resource needs before it can work: a Keystone user, or a URL that a messaging service signs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import (
    USER,
    Context,
    Properties,
    ResourceFailure,
    ResourceType,
    physical_name,
    target_of,
)
from stoker.resources.env import StackUsers
from stoker.transports.base import Queues

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
    stack_users: StackUsers | None
    #: Whether Keystone stores the users. Stoker's own users need no provisioning.
    users_in_keystone: bool

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed if the transport needs a user and Stoker cannot create users."""
        transport = properties.get(self.property) or self.default
        transports = self.login_transports
        if self.kind.reached_by is not None:  # the agent is known only when the server exists
            transports -= self.signed_methods.keys()
        is_impossible = self.users_in_keystone and self.stack_users is None
        if is_impossible and isinstance(transport, str) and transport in transports:
            raise StackValidationFailed(self._describe_refusal(transport))

    def find_need(self, context: Context, resource: Resource, properties: Properties) -> str | None:
        """
        Return what the agent still needs, ``URL`` or ``USER``; None if nothing. Requests a URL that is needed.

        Raises ResourceFailure if the agent needs a user and Stoker cannot create users.
        """
        if self.kind.reached_by is not None:
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
            "set stack_domain_admin, or take another"
        )
