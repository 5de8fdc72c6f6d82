"""Every log line begins with a stable id, ``noun.state``; operators filter and alert on it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parents[1] / "src"
_LEVELS = {"debug", "info", "warning", "error", "exception"}
_ID = r"[a-z_]+\.[a-z_]+"


def _messages(package: str) -> Iterator[tuple[str, ast.expr]]:
    """Yield the place and the first argument of every call of a logger's method."""
    for module in sorted((_SOURCE / package).rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_bytes())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LEVELS:
                of = node.func.value
                is_logger = isinstance(of, ast.Name) and of.id == "_log"
                if is_logger or (isinstance(of, ast.Call) and ast.unparse(of.func) == "logging.getLogger"):
                    yield f"{module.relative_to(_SOURCE)}:{node.lineno}", node.args[0]


@pytest.mark.parametrize(("package", "form"), [("stoker", rf"{_ID}$"), ("stoker_agent", rf"{_ID}: ")])
def test_every_line_has_an_id(package, form):
    messages = list(_messages(package))
    wrong = [
        place
        for place, message in messages
        if not (isinstance(message, ast.Constant) and re.match(form, str(message.value)))
    ]
    assert len(messages) > 20
    assert not wrong, "\n".join(wrong)
