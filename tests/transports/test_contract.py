"""Every transport keeps these promises; a new file in transports/ is tested here unasked."""

from __future__ import annotations

from uuid import uuid4

import pytest

from stoker import transports
from stoker.transports.base import Party
from support.stacks import SITE

PARTY = Party(
    resource_id=str(uuid4()),
    resource_name="server",
    name="s-server-abc",
    stack_id=str(uuid4()),
    stack_name="s",
    project_id="p",
)
FOUND = transports.load()


def test_the_public_names_are_exactly_these():
    assert sorted(FOUND.signalling) == ["CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "STOKER_SIGNAL"]
    assert sorted(FOUND.carrying) == ["POLL_SERVER_CFN", "POLL_SERVER_HEAT", "STOKER_PUSH"]


def test_the_defaults_are_there():
    assert transports.DEFAULT_SIGNAL in FOUND.signalling
    assert transports.DEFAULT_METADATA in FOUND.carrying


@pytest.mark.parametrize("transport", FOUND.signalling.values(), ids=lambda each: each.signal_name)
def test_what_it_tells_the_agent_are_deploy_inputs(transport, store):
    inputs = store.write(lambda tx: transport.signal_inputs(tx, SITE, PARTY))
    assert all(name.startswith("deploy_") for name in inputs)
    again = store.write(lambda tx: transport.signal_inputs(tx, SITE, PARTY))
    assert inputs == again, "a run that is asked for twice would be two"


@pytest.mark.parametrize("transport", FOUND.carrying.values(), ids=lambda each: each.metadata_name)
def test_what_it_tells_the_agent_are_sections(transport):
    sections = transport.sections(SITE, PARTY)
    assert sections == transport.sections(SITE, PARTY)
    assert all(isinstance(section, dict) and all(section.values()) for section in sections.values())
