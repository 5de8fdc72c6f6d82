"""OS::Heat::SwiftSignal: waits for signals that are written to a handle's object."""

from __future__ import annotations

from stoker.resources.swift_signal_handle import SWIFT_SIGNAL, listen, of_url
from stoker.resources.wait_base import Words, wait_type

_WORDS = Words(handle="handle", timeout="timeout", count="count", data="data")

TYPE = wait_type(SWIFT_SIGNAL, _WORDS, of_url, listen, most=1000)
