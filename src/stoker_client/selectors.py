"""Selectors: conditions over labels and facts of servers, as texts that the service evaluates."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[^\s()]+")


def join(selectors: Sequence[str]) -> str | None:
    """Return the selector of the servers that every one of ``selectors`` selects, or None without selectors."""
    parts = [text if len(selectors) == 1 or _PLAIN.fullmatch(text) else f"({text})" for text in selectors]
    return " and ".join(parts) or None
