"""Every log line begins with a stable id, ``noun.state``; operators filter and alert on it."""

from __future__ import annotations

import re

import pytest

from support.source_code import sources

_ID = r"[a-z_]+\.[a-z_]+"


@pytest.mark.parametrize(("package", "form"), [("stoker", rf"{_ID}$"), ("stoker_agent", rf"{_ID}: ")])
def test_every_line_has_an_id(package, form):
    calls = [
        (f"{module.path}:{call.line}", call.first)
        for module in sources(package)
        for call in module.log_calls
        if call.receiver in {"_log", "logging.getLogger"}
    ]
    wrong = [place for place, message in calls if not re.match(form, str(message))]
    assert len(calls) > 20
    assert not wrong, "\n".join(wrong)
