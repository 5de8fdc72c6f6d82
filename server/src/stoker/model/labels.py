"""Labels of servers, in the syntax of Kubernetes labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from stoker.model.errors import Invalid

#: The maximum number of labels of a server.
MOST = 64
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_SYNTAX = (
    # the wording of Kubernetes
    "at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)


def check_labels(labels: Any, what: str = "labels") -> dict[str, str]:
    """
    Validate a complete set of labels and return it. ``what`` names the field in error messages.

    Raises Invalid, which names the label and the error.
    """
    if not isinstance(labels, Mapping):
        raise Invalid(f"{what} must be a map of names and values, not {type(labels).__name__}")
    if len(labels) > MOST:
        raise Invalid(f"{what}: a server may have {MOST} labels, not {len(labels)}")
    return {_key(key, what): _value(key, value, what) for key, value in labels.items()}


def apply_changes(had: Mapping[str, str], changes: Any) -> dict[str, str]:
    """Return the labels ``had`` with ``changes`` applied; the value None removes a label. Raises Invalid."""
    if not isinstance(changes, Mapping):
        return check_labels(changes)
    left = {key: value for key, value in had.items() if key not in changes}
    new = {key: value for key, value in changes.items() if value is not None}
    return check_labels({**left, **new})


def _key(key: Any, what: str) -> str:
    prefix, slash, name = key.rpartition("/") if isinstance(key, str) else ("", "", "")
    if not _NAME.fullmatch(name) or (slash and not _PREFIX.fullmatch(prefix)):
        shown = repr(key)[:80]
        raise Invalid(f"{what}: invalid label name {shown}: {_SYNTAX}, with an optional prefix DNS-NAME/")
    return str(key)


def _value(key: Any, value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{what}.{key}: a label's value must be a string, not {type(value).__name__}: put it in quotes")
    if value and not _NAME.fullmatch(value):
        raise Invalid(f"{what}.{key}: {value[:80]!r} is no label's value: empty, or {_SYNTAX}")
    return value
