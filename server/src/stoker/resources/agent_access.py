"""
What the agent of a resource needs before an action: a user at Keystone, or a URL that an external Zaqar signs.

The engine asks for it before it calls the type. As long as it is missing, the step waits as at a breakpoint; what
provides it wakes the resource, and the step begins again. With Stoker's agent, a signed URL replaces the user. The user
is disabled while the resource is suspended, and deleted with the resource.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.hot.words import clip
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import (
    USER,
    Context,
    KnowsAgent,
    Properties,
    ResourceEnv,
    ResourceFailure,
    ResourceType,
    physical_name,
    target_of,
)
from stoker.transports.base import signed_method_of

UPSTREAM_AGENT = "os-collect-config"
#: The properties that select a transport: for the results of runs, and for the document of a server.
_SIGNAL, _METADATA = "signal_transport", "software_config_transport"


class AccessMissing(Exception):
    """The agent has no access yet. It is requested, and the resource is woken once it exists."""


def validate(env: ResourceEnv, kind: ResourceType, properties: Properties) -> None:
    """
    Raise StackValidationFailed if the properties name a transport that this site does not offer, or which certainly
    needs a user that this site cannot create.

    On a site that requires signed documents, also refuse transports whose documents the upstream agent cannot verify.
    If the template does not name the agent, the creation of the server makes this check.
    """
    schema = kind.properties or {}
    if _SIGNAL not in schema and _METADATA not in schema:
        return
    key = _SIGNAL if _SIGNAL in schema else _METADATA
    if env.agents_wait:
        _refuse_user(env, kind, properties)
    if schema[key].allowed:
        return  # a property with fixed values, such as that of a wait condition handle, checks itself
    name, transports = properties[key], env.transports
    offered = transports.signal_names if key == _SIGNAL else transports.metadata_names
    if name not in (UNKNOWN, None, *offered):
        allowed = ", ".join(offered)
        raise StackValidationFailed(f"{key}: {clip(repr(name))} is not an allowed value [{allowed}]")
    if key == _METADATA:
        _refuse_unsigned(env, properties)


def _refuse_unsigned(env: ResourceEnv, properties: Properties) -> None:
    """Raise StackValidationFailed if the site requires signed documents, and the upstream agent cannot verify any."""
    if properties["agent"] != UPSTREAM_AGENT:
        return
    name = properties[_METADATA] or env.transports.default_metadata
    if isinstance(name, str) and env.transports.is_rejected(name, own_agent=False):
        raise StackValidationFailed(describe_unsigned(name))


def describe_unsigned(name: str) -> str:
    """Return why this site refuses the transport: the server's agent cannot verify its documents."""
    return (
        f"software_config_transport: {name} carries documents through an object store or a queue, os-collect-config "
        "cannot verify them, and this site requires that (require_signed_transports): say `agent: stoker`, enroll the "
        "server, or use POLL_SERVER_CFN"
    )


def _refuse_user(env: ResourceEnv, kind: ResourceType, properties: Properties) -> None:
    """Raise StackValidationFailed if the agent certainly needs a user, and this site cannot create users."""
    if kind.agents_transport is None or env.platform.keeps_users or env.stack_users is not None:
        return
    name = properties.get(kind.agents_transport) or _default(env, kind)
    # the agent is known only when the server exists
    is_signed = isinstance(kind, KnowsAgent) and signed_method_of(_transport(env, name)) is not None
    if name is not UNKNOWN and _logs_in(env, name) and not is_signed:
        raise StackValidationFailed(_describe_refusal(kind, name))


def obtain(context: Context, kind: ResourceType, resource: Resource, properties: Properties) -> Mapping[str, Any]:
    """
    Return the entries for the resource's data with which its agent has access. Raises AccessMissing, and
    ResourceFailure if the agent needs a user and Stoker cannot create users.
    """
    env = context.env
    if isinstance(kind, KnowsAgent):
        name, is_own = kind.reached_by(context, resource, properties)
    else:
        name, is_own = properties.get(str(kind.agents_transport)) or _default(env, kind), False
    if not _logs_in(env, name):
        return {}
    method = signed_method_of(_transport(env, name)) if is_own else None
    if method is not None and _has_signed_url(context, resource, method):
        return {}
    if env.platform.keeps_users or USER in resource.data:
        return {}
    if env.stack_users is None:
        raise ResourceFailure(_describe_refusal(kind, name))
    return {USER: _find_user(context, resource)}


def _has_signed_url(context: Context, resource: Resource, method: str) -> bool:
    """Return whether the agent has a signed URL in place of a user. Raises AccessMissing until that is certain."""
    target, queues = target_of(context, resource), context.env.platform.queues
    if not queues.sign(context.tx, target, method):
        raise AccessMissing("Waiting for the messaging service to sign a URL for the agent")
    return queues.signed(context.tx, target, method) is not None


def enable(context: Context, resource: Resource) -> Mapping[str, Any]:
    """Return the data of a suspended resource whose user, maybe a new one, is enabled. Raises AccessMissing."""
    if USER not in resource.data or context.env.stack_users is None:
        return {}
    return {USER: _find_user(context, resource)}


def _find_user(context: Context, resource: Resource) -> Mapping[str, str]:
    """Return the ids of the resource's user. If it is not enabled, requests that, and raises AccessMissing."""
    users = context.env.stack_users
    assert users is not None
    user = users.find(context.tx, resource.id)
    if user is None:
        users.ensure(context.tx, resource.id, context.stack_id, physical_name(context, resource))
        raise AccessMissing("Waiting for a user of the agent at Keystone")
    return user


def disable(context: Context, resource: Resource) -> None:
    """Disable the user of a resource that is suspended."""
    if context.env.stack_users is not None:
        context.env.stack_users.disable(context.tx, resource.id)


def delete(context: Context, resource: Resource) -> None:
    """Delete the user of a resource that goes, and a queue that exists only for a signed URL."""
    context.env.platform.queues.close(context.tx, target_of(context, resource))
    if context.env.stack_users is not None:
        context.env.stack_users.drop(context.tx, resource.id)


def _transport(env: ResourceEnv, name: str) -> object:
    return env.transports.signal_transports.get(name) or env.transports.metadata_transports.get(name)


def _logs_in(env: ResourceEnv, name: str) -> bool:
    return bool(getattr(_transport(env, name), "logs_in", False))


def _default(env: ResourceEnv, kind: ResourceType) -> str:
    is_signal = kind.agents_transport == _SIGNAL
    return env.transports.default_signal if is_signal else env.transports.default_metadata


def _describe_refusal(kind: ResourceType, transport: str) -> str:
    return (
        f"{kind.agents_transport} {transport} needs users at Keystone, which this site makes none of: "
        "set stack_domain_cloud, or take another"
    )
