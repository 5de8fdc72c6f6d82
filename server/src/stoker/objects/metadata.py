"""Metadata of accounts and containers: new values replace earlier ones, and empty values remove them."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.objects import limits

ACCOUNT = "x-account-meta-"
CONTAINER = "x-container-meta-"
OBJECT = "x-object-meta-"


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
