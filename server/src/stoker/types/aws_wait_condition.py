"""AWS::CloudFormation::WaitCondition: waits for signals to the URL of a handle, which an update may renew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from stoker.model.arn import Arn
from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, ResourceType, Signalled, TakesSignals, target_of
from stoker.store import resources
from stoker.types.wait_base import FAILURE, SUCCESS, WaitType, Words, record_signal, schema, waiters

WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
_WORDS = Words(handle="Handle", timeout="Timeout", count="Count", data="Data")
_KEYS = ("Status", "Reason", "Data", "UniqueId")


class WaitConditionHandle(TakesSignals, ResourceType):
    name = "AWS::CloudFormation::WaitConditionHandle"
    description = "Takes signals for wait conditions, at a pre-signed URL."

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        url = context.env.platform.signed_url(target_of(context, resource), "waitcondition", "PUT")
        return Outcome(physical_id=resource.id, data={"url": url})

    def reference(self, context: Context, resource: Resource) -> Any:
        return resource.data.get("url") or resource.name

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
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

    def waiters(self, context: Context, resource: Resource) -> Iterable[str]:
        return waiters(context, WAIT_CONDITION, "Handle", resource.data.get("url"))


class WaitCondition(WaitType):
    name = WAIT_CONDITION
    words = _WORDS
    properties = schema(_WORDS)
    attributes = {_WORDS.data: "What the signals brought, in JSON, by their ids."}

    def find_handle(self, context: Context, reference: str) -> Resource | None:
        _, separator, path = unquote(urlsplit(reference).path).partition("/waitcondition/")
        try:
            arn = Arn.parse(path) if separator else None
        except Invalid:
            arn = None
        own = (context.project_id, context.stack_id)
        if arn is None or arn.resource is None or (arn.project_id, arn.stack_id) != own:
            return None
        resource = resources.find_by_name(context.tx, context.stack_id, arn.resource)
        # A replaced handle may have had the same name, so the URL decides.
        return resource if resource is not None and resource.data.get("url") == reference else None


class RenewedHandle(WaitConditionHandle):
    name = "OS::Heat::UpdateWaitConditionHandle"
    description = "Takes signals for wait conditions, at a URL that every update renews."

    def is_stale(self, context: Context, resource: Resource) -> bool:
        return True
