"""AWS::CloudFormation::WaitCondition: waits for signals to the URL of a handle, which an update may renew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from stoker.model.arn import Arn
from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, ResourceType, Signalled, target_of
from stoker.resources.wait_base import FAILURE, SUCCESS, Words, record_signal, wait_type, waiters
from stoker.store import resources

WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
_KEYS = ("Status", "Reason", "Data", "UniqueId")


def create(context: Context, resource: Resource, _properties: Properties) -> Outcome:
    url = context.env.platform.signed_url(target_of(context, resource), "waitcondition", "PUT")
    return Outcome(physical_id=resource.id, data={"url": url})


def reference(_context: Context, resource: Resource) -> Any:
    return resource.data.get("url") or resource.name


def of_url(context: Context, url: str) -> Resource | None:
    """Return the handle of this stack to which the URL belongs; None if there is none."""
    _, separator, path = unquote(urlsplit(url).path).partition("/waitcondition/")
    try:
        arn = Arn.parse(path) if separator else None
    except Invalid:
        arn = None
    if arn is None or arn.resource is None or (arn.project_id, arn.stack_id) != (context.project_id, context.stack_id):
        return None
    resource = resources.find_by_name(context.tx, context.stack_id, arn.resource)
    # A replaced handle may have had the same name, so the URL decides.
    return resource if resource is not None and resource.data.get("url") == url else None


def signal(_context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
    """Record a signal. Raises Invalid if ``details`` is not a complete signal."""
    if sorted(details) != sorted(_KEYS):
        raise Invalid(f"a signal to {resource.name} has {', '.join(_KEYS)}, all of them")
    if details["Status"] not in (SUCCESS, FAILURE):
        raise Invalid(f"a signal's Status is {SUCCESS} or {FAILURE}, not {details['Status']!r}")
    status, reason = details["Status"], str(details["Reason"])
    changed = replace(
        resource, metadata=record_signal(resource, str(details["UniqueId"]), status, reason, details["Data"])
    )
    return Signalled(f"status:{status} reason:{reason}", changed)


def waiting_for(context: Context, resource: Resource) -> Iterable[str]:
    return waiters(context, WAIT_CONDITION, "Handle", resource.data.get("url"))


HANDLE = ResourceType(
    name="AWS::CloudFormation::WaitConditionHandle",
    properties={},
    create=create,
    reference=reference,
    signal=signal,
    waiters=waiting_for,
    description="Takes signals for wait conditions, at a pre-signed URL.",
)


CONDITION = wait_type(WAIT_CONDITION, Words(handle="Handle", timeout="Timeout", count="Count", data="Data"), of_url)


def _always(_context: Context, _resource: Resource) -> bool:
    return True


RENEWED_HANDLE: ResourceType = replace(
    HANDLE,
    name="OS::Heat::UpdateWaitConditionHandle",
    is_stale=_always,
    description="Takes signals for wait conditions, at a URL that every update renews.",
)

TYPES = (HANDLE, CONDITION, RENEWED_HANDLE)
