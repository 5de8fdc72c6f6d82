"""OS::Heat::SwiftSignal: waits for signals that are put into a handle's object."""

from __future__ import annotations

from stoker.resources.swift_signal_handle import SWIFT_SIGNAL, of_url
from stoker.resources.waiting import Words, wait_type

TYPE = wait_type(SWIFT_SIGNAL, Words(handle="handle", timeout="timeout", count="count", data="data"), of_url, most=1000)
