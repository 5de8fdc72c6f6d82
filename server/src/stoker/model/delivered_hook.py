"""Delivered hooks: hooks that an agent fetches for one run, as the option ``hook`` of a config names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.model.errors import Invalid

#: The option of a config that names its hook.
OPTION = "hook"
#: Where agents fetch stored hooks, relative to Stoker's URL.
STORED_PATH = "/agent/v1/hooks/"
_DIGEST = re.compile("[0-9a-f]{64}")
_FORM = (
    'the option hook is the name of a stored hook, {"name": …, "version": …}, '
    'or {"url": …, "sha256": …} with a URL of http or https'
)
_LONGEST_URL = 2048


@dataclass(frozen=True, slots=True)
class DeliveredHook:
    """A hook with its digest, as agents fetch it."""

    url: str
    sha256: str

    @property
    def is_stored(self) -> bool:
        """Whether Stoker stores the hook."""
        return self.url.startswith(STORED_PATH)


@dataclass(frozen=True, slots=True)
class HookName:
    """The name of a stored hook; without a version, the newest one."""

    name: str
    version: int | None = None


def parse_option(value: Any) -> DeliveredHook | HookName:
    """Parse the option ``hook`` of a config. Raises Invalid."""
    if isinstance(value, str) and value:
        return HookName(value)
    if isinstance(value, Mapping) and "url" in value:
        return _delivered(value)
    if isinstance(value, Mapping) and value.keys() <= {"name", "version"}:
        name, version = value.get("name"), value.get("version")
        is_number = isinstance(version, int) and not isinstance(version, bool) and version > 0
        if isinstance(name, str) and name and (version is None or is_number):
            return HookName(name, version)
    raise Invalid(_FORM)


def delivered(options: Any) -> DeliveredHook | None:
    """Return the hook of a stored config's options, or None. The options were checked when the config was created."""
    value = options.get(OPTION) if isinstance(options, Mapping) else None
    return _delivered(value) if isinstance(value, Mapping) else None


def is_digest(value: Any) -> bool:
    """Return whether a value is a SHA-256 in lower-case hexadecimal digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _delivered(value: Mapping[str, Any]) -> DeliveredHook:
    url, sha256 = value.get("url"), str(value.get("sha256") or "").lower()
    if not is_digest(sha256):
        raise Invalid(f"{_FORM}; sha256 has 64 hexadecimal digits")
    is_url = isinstance(url, str) and url.isprintable() and " " not in url and len(url) <= _LONGEST_URL
    if not is_url or not str(url).startswith(("http://", "https://", STORED_PATH)):
        raise Invalid(_FORM)
    return DeliveredHook(str(url), sha256)
