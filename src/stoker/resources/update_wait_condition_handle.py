"""
OS::Heat::UpdateWaitConditionHandle: a handle that every update of its stack replaces, so that conditions wait again.
"""

from __future__ import annotations

from dataclasses import replace

from stoker.model.stack import Resource
from stoker.resources import aws_wait_condition_handle
from stoker.resources.base import Context, ResourceType


def _always(_context: Context, _resource: Resource) -> bool:
    return True


TYPE: ResourceType = replace(
    aws_wait_condition_handle.TYPE,
    name="OS::Heat::UpdateWaitConditionHandle",
    is_stale=_always,
    description="Takes signals for wait conditions, at a URL that every update renews.",
)
