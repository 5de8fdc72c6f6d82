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


def merge(kept: Mapping[str, str], said: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Merge the request headers ``said`` (lower-case names) into ``kept``. Raises Invalid if a limit is exceeded."""
    removing = f"x-remove-{prefix[2:]}"
    found = dict(kept)
    for name, value in said.items():
        if name.startswith(removing):
            found.pop(prefix + name[len(removing) :], None)
        elif name.startswith(prefix):
            if value:
                found[name] = value
            else:
                found.pop(name, None)
    limits.metadata(found, prefix)
    return found


def of_container(kept: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    """Merge metadata and versioning settings of a container. Raises Invalid."""
    found = merge(kept, said, CONTAINER)
    for name, other in ((_LOCATION, _HISTORY), (_HISTORY, _LOCATION)):
        removed = "x-remove-" + name[2:] in said
        if value := said.get(name, ""):
            if said.get(other):
                raise Invalid(f"Only one of {_LOCATION} and {_HISTORY} may be specified")
            found.pop(other, None)
            found[name] = limits.container_name(value.strip("/"))
        elif removed or name in said:
            # Removing either name removes the archive, whichever name is stored.
            found.pop(name, None)
            if not said.get(other):
                found.pop(other, None)
    if _ENABLED in said:
        found[_ENABLED] = _flag(said[_ENABLED])
    if _ENABLED in found and (_LOCATION in found or _HISTORY in found):
        raise Invalid(f"a container has either {_ENABLED} or an archive ({_LOCATION}, {_HISTORY}), not both")
    return found


def _flag(value: str) -> str:
    word = value.strip().lower()
    if word not in _TRUE | _FALSE:
        raise Invalid(f"{_ENABLED} is true or false, not {value!r:.100}")
    return "true" if word in _TRUE else "false"
