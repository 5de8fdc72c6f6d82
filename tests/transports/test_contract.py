"""Every transport keeps these promises; a new file in transports/ is tested here unasked."""

from __future__ import annotations

import dataclasses
from uuid import uuid4

import pytest
from msgspec.structs import replace

from stoker import transports
from stoker.model.errors import Invalid
from stoker.transports.base import PublishingTransport, TransportTarget, needs_provisioning
from support import query
from support.stacks import site
from support.work import ManualWork

PARTY = TransportTarget(
    resource_id=str(uuid4()),
    resource_name="server",
    name="s-server-abc",
    stack_id=str(uuid4()),
    stack_name="s",
    project_id="p",
)
FOUND = transports.load()


@pytest.fixture
def here(store):
    return store, site(store, ManualWork())


@pytest.mark.parametrize(
    "transport",
    [
        each
        for each in [*FOUND.signal_transports.values(), *FOUND.metadata_transports.values()]
        if needs_provisioning(each)
    ],
)
def test_a_transport_closes_what_it_opens(transport, here):
    store, site = here
    before = everything(store)
    for _ in range(2):
        store.write(lambda tx: transport.open(tx, site, PARTY))
        if isinstance(transport, PublishingTransport):
            store.write(lambda tx: transport.publish(tx, site, PARTY, {"deployments": []}))
        assert everything(store) != before
        store.write(lambda tx: transport.close(tx, site, PARTY))
        assert everything(store) == before
    store.write(lambda tx: transport.close(tx, site, PARTY))


def everything(store):
    with store.read() as tx:
        tables = ("queues", "messages", "containers", "objects")
        return {name: query.rows(tx, f"SELECT * FROM {name}") for name in tables}


def test_the_public_names_are_exactly_these():
    assert sorted(FOUND.signal_transports) == [
        "CFN_SIGNAL",
        "HEAT_SIGNAL",
        "NO_SIGNAL",
        "STOKER_SIGNAL",
        "TEMP_URL_SIGNAL",
        "ZAQAR_SIGNAL",
    ]
    assert sorted(FOUND.metadata_transports) == [
        "POLL_SERVER_CFN",
        "POLL_SERVER_HEAT",
        "POLL_TEMP_URL",
        "STOKER_PUSH",
        "ZAQAR_MESSAGE",
    ]


def test_the_default_transports_exist():
    assert FOUND.default_signal in FOUND.signal_names
    assert FOUND.default_metadata in FOUND.metadata_names
    with pytest.raises(Invalid, match="default_software_config_transport must be one of AUTO"):
        FOUND.for_site("AUTO", "PIGEON")


@pytest.mark.parametrize(
    ("queues", "objects", "own_agent", "expected"),
    [
        (True, True, True, ("STOKER_PUSH", "STOKER_SIGNAL")),
        (True, True, False, ("ZAQAR_MESSAGE", "ZAQAR_SIGNAL")),
        (False, True, False, ("POLL_TEMP_URL", "TEMP_URL_SIGNAL")),
        (False, False, False, ("POLL_SERVER_CFN", "CFN_SIGNAL")),
    ],
)
def test_auto_resolves_to_a_transport(here, queues, objects, own_agent, expected):
    site = dataclasses.replace(here[1], has_queues=queues, has_objects=objects)
    assert (
        transports.select_metadata(site, own_agent=own_agent),
        transports.select_signal(site, own_agent=own_agent),
    ) == expected


@pytest.mark.parametrize("transport", FOUND.signal_transports.values(), ids=lambda each: each.signal_name)
def test_a_signal_transport_gives_the_agent_deploy_inputs(transport, here):
    store, site = here
    inputs = store.write(lambda tx: transport.signal_inputs(tx, site, PARTY))
    assert all(name.startswith("deploy_") for name in inputs)
    again = store.write(lambda tx: transport.signal_inputs(tx, site, PARTY))
    assert inputs == again, "a run that is asked for twice would be two"


@pytest.mark.parametrize("transport", FOUND.metadata_transports.values(), ids=lambda each: each.metadata_name)
def test_a_metadata_transport_gives_the_agent_sections(transport, here):
    store, site = here
    for target in (PARTY, replace(PARTY, own_agent=True)):
        with store.read() as tx:
            sections = transport.sections(tx, site, target)
            assert sections == transport.sections(tx, site, target)
        assert all(isinstance(section, dict) and all(section.values()) for section in sections.values())
