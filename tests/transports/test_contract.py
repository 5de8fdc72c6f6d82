"""Every transport keeps these promises; a new file in transports/ is tested here unasked."""

from __future__ import annotations

import pytest

from stoker import transports

FOUND = transports.load()


def test_the_public_names_are_exactly_these():
    assert sorted(FOUND.signalling) == ["HEAT_SIGNAL", "NO_SIGNAL", "STOKER_SIGNAL"]
    assert sorted(FOUND.carrying) == ["POLL_SERVER_HEAT", "STOKER_PUSH"]


def test_the_defaults_are_there():
    assert transports.DEFAULT_SIGNAL in FOUND.signalling
    assert transports.DEFAULT_METADATA in FOUND.carrying


@pytest.mark.parametrize("transport", FOUND.signalling.values(), ids=lambda each: each.signal_name)
def test_what_it_tells_the_agent_are_deploy_inputs(transport):
    assert all(name.startswith("deploy_") for name in transport.signal_inputs())
