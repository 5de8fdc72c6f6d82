from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.scope import World


@pytest.fixture
def world() -> Callable[..., World]:
    return World


@pytest.fixture
def template() -> Callable[..., dict[str, Any]]:
    """A decoded template around the given sections."""

    def build(version: str = "2018-08-31", **sections: Any) -> dict[str, Any]:
        return {"heat_template_version": version, **sections}

    return build
