"""The OpenAPI document, generated once per process: it takes 0.2 seconds, and several modules make tests of it."""

from __future__ import annotations

from functools import cache
from typing import Any

from stoker.http.openapi.document import document
from stoker.http.openapi.routes import DESCRIBED


@cache
def openapi_document() -> dict[str, Any]:
    """Return the document of all described routes. Callers must not change it."""
    return document(DESCRIBED, "")
