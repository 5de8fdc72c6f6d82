"""Limits for objects, names and metadata: Swift's defaults, but for the size of an object; and changes of metadata."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stoker.model.errors import Invalid

CONTAINER_NAME = 256
#: Bytes of an object.
OBJECT_SIZE = 16 * 1024 * 1024
OBJECT_NAME = 1024
META_NAME = 128
META_VALUE = 256
META_COUNT = 90
META_OVERALL = 4096
#: Maximum length of a header value that is stored unchanged.
HEADER = 1024
#: Maximum number of lines in one page of a listing.
LISTING = 10_000

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def container_name(name: str) -> str:
    """Raises Invalid unless ``name`` is a valid container name."""
    if not name or "/" in name or "\0" in name or _longer(name, CONTAINER_NAME):
        raise Invalid(f"a container's name has 1 to {CONTAINER_NAME} bytes and no slash; it cannot be {name!r:.100}")
    return name


def object_name(name: str) -> str:
    """Raises Invalid unless ``name`` is a valid object name."""
    if not name or "\0" in name or _longer(name, OBJECT_NAME):
        raise Invalid(f"an object's name has 1 to {OBJECT_NAME} bytes; it cannot be {name!r:.100}")
    return name


def header(name: str, value: str) -> str:
    """Raises Invalid for a value that cannot be returned as a header."""
    if _CONTROL.search(value) or _longer(value, HEADER):
        raise Invalid(f"the header {name} has at most {HEADER} bytes and no control characters")
    return value


def check_metadata(headers: Mapping[str, str], prefix: str) -> None:
    """Check the ``headers`` that begin with ``prefix`` against the limits. Raises Invalid."""
    size = count = 0
    for name, value in headers.items():
        if not name.startswith(prefix):
            continue
        bare = name[len(prefix) :]
        if not bare:
            raise Invalid(f"Metadata name cannot be empty: {prefix}")
        if _longer(bare, META_NAME):
            raise Invalid(f"Metadata name longer than {META_NAME}: {name:.200}")
        if _longer(value, META_VALUE):
            raise Invalid(f"Metadata value longer than {META_VALUE}: {name}")
        if _CONTROL.search(value):
            raise Invalid(f"Metadata value with a control character: {name}")
        size += len(bare.encode()) + len(value.encode())
        count += 1
    if count > META_COUNT:
        raise Invalid(f"Too many metadata items; max {META_COUNT}")
    if size > META_OVERALL:
        raise Invalid(f"Total metadata too large; max {META_OVERALL}")


def _longer(text: str, limit: int) -> bool:
    try:
        return len(text.encode()) > limit
    except UnicodeEncodeError:
        raise Invalid(f"{text!r:.100} is not text that can be written as UTF-8") from None


ACCOUNT_META = "x-account-meta-"
CONTAINER_META = "x-container-meta-"
OBJECT_META = "x-object-meta-"


def merge_metadata(stored: Mapping[str, str], headers: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Merge the request's ``headers`` (lower-case names) into ``stored``. Raises Invalid if a limit is exceeded."""
    removing = f"x-remove-{prefix[2:]}"
    merged = dict(stored)
    for name, value in headers.items():
        if name.startswith(removing):
            merged.pop(prefix + name[len(removing) :], None)
        elif name.startswith(prefix):
            if value:
                merged[name] = value
            else:
                merged.pop(name, None)
    check_metadata(merged, prefix)
    return merged
