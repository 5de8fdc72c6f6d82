"""AWS::CloudFormation::WaitCondition: waits for signals to the URL of a handle."""

from __future__ import annotations

from stoker.resources.aws_wait_condition_handle import WAIT_CONDITION, of_url
from stoker.resources.wait_base import Words, wait_type

TYPE = wait_type(WAIT_CONDITION, Words(handle="Handle", timeout="Timeout", count="Count", data="Data"), of_url)
