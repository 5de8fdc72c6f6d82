"""Metadata of accounts and containers: new values replace earlier ones, and empty values remove them."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.errors import Invalid
from stoker.objects import limits

ACCOUNT = "x-account-meta-"
CONTAINER = "x-container-meta-"
OBJECT = "x-object-meta-"

_ENABLED = "x-versions-enabled"
_LOCATION, _HISTORY = "x-versions-location", "x-history-location"
_TRUE = frozenset(("true", "1", "yes", "on", "t", "y"))
_FALSE = frozenset(("false", "0", "no", "off", "f", "n"))


def merge(stored: Mapping[str, str], headers: Mapping[str, str], prefix: str) -> dict[str, str]:
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
    limits.metadata(merged, prefix)
    return merged


def of_container(stored: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, str]:
    """Merge metadata and versioning settings of a container. Raises Invalid."""
    merged = merge(stored, headers, CONTAINER)
    for name, other in ((_LOCATION, _HISTORY), (_HISTORY, _LOCATION)):
        removed = "x-remove-" + name[2:] in headers
        if value := headers.get(name, ""):
            if headers.get(other):
                raise Invalid(f"Only one of {_LOCATION} and {_HISTORY} may be specified")
            merged.pop(other, None)
            merged[name] = limits.container_name(value.strip("/"))
        elif removed or name in headers:
            # Removing either name removes the archive, whichever name is stored.
            merged.pop(name, None)
            if not headers.get(other):
                merged.pop(other, None)
    if _ENABLED in headers:
        merged[_ENABLED] = _flag(headers[_ENABLED])
    if _ENABLED in merged and (_LOCATION in merged or _HISTORY in merged):
        raise Invalid(f"a container has either {_ENABLED} or an archive ({_LOCATION}, {_HISTORY}), not both")
    return merged


def _flag(value: str) -> str:
    word = value.strip().lower()
    if word not in _TRUE | _FALSE:
        raise Invalid(f"{_ENABLED} is true or false, not {value!r:.100}")
    return "true" if word in _TRUE else "false"
