"""The OpenAPI document, generated once per process: it takes 0.2 seconds, and several modules make tests of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from stoker.http.apis import DESCRIBED
from stoker.http.openapi import document


@cache
def openapi_document() -> dict[str, Any]:
    """Return the document of all described routes. Callers must not change it."""
    return document(DESCRIBED, "")
