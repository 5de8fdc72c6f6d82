"""CloudFormation's wait conditions, and their handles, which take signals at pre-signed URLs of the CFN API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from stoker.model.errors import Invalid
from stoker.model.ids import Arn
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, Signalled, target_of
from stoker.store import resources
from stoker.types.waits import HandleType, WaitType, Words, record, schema

_WORDS = Words(handle="Handle", timeout="Timeout", count="Count", data="Data")


class WaitCondition(WaitType):
    name = "AWS::CloudFormation::WaitCondition"
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


class WaitConditionHandle(HandleType):
    name = "AWS::CloudFormation::WaitConditionHandle"
    description = "Takes signals for wait conditions, at a pre-signed URL."
    condition = WaitCondition

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        url = context.env.platform.signed_url(target_of(context, resource), "waitcondition", "PUT")
        return Outcome(physical_id=resource.id, data={"url": url})

    def signal(self, context: Context, resource: Resource, details: Mapping[str, Any]) -> Signalled:
        """Record a signal. Raises Invalid if ``details`` is not a complete signal."""
        keys = ("Status", "Reason", "Data", "UniqueId")
        if sorted(details) != sorted(keys):
            raise Invalid(f"a signal to {resource.name} has {', '.join(keys)}, all of them")
        return record(resource, details, keys)


class RenewedHandle(WaitConditionHandle):
    name = "OS::Heat::UpdateWaitConditionHandle"
    description = "Takes signals for wait conditions, at a URL that every update renews."

    def is_stale(self, context: Context, resource: Resource) -> bool:
        return True
