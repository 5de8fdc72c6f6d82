"""OS::Heat::WaitCondition: waits for signals to a handle."""

from __future__ import annotations

from stoker.resources.wait_base import Words, wait_type
from stoker.resources.wait_condition_handle import WAIT_CONDITION, listen
from stoker.store import resources

TYPE = wait_type(
    WAIT_CONDITION,
    Words(handle="handle", timeout="timeout", count="count", data="data"),
    lambda context, id: resources.with_physical_id(context.tx, context.stack_id, id),
    listen,
)
