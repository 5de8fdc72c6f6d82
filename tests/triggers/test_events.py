"""One stream of several subjects: their events, its cursors, and what a project's lists announce."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker.http.event_stream import Batch, parse_cursor
from stoker.http.stoker.events import ListReader, StackReader, SubjectsReader
from stoker.http.stoker.trigger_events import TriggerReader
from stoker.model.errors import EntityNotFound
from stoker.store import events
from stoker.store.notifier import stack_topic, trigger_topic
from support.fleet import Fleet
from support.templates import config, template

Read = Callable[..., Batch]


def read(fleet: Fleet, reader, notified=None) -> Batch:
    return fleet.world.read(reader.read, notified)


def names(batch: Batch) -> list[tuple[str, str | None]]:
    return [(event.name, event.subject) for event in batch.events]


def test_a_stack_sends_the_events_to_come_and_those_after_a_cursor(heat, fleet):
    stack = heat.create(template({"a": config(), "b": config()}))
    reader = StackReader(stack.id, fleet.world.project, "")
    (first,) = read(fleet, reader).events
    assert (first.name, first.data["stack_status"]) == ("stack", "CREATE_COMPLETE")
    heat.update(stack, template({"a": config(), "c": config()}))
    batch = read(fleet, reader)
    states = [
        (event.data["resource_name"], event.data["resource_status"]) for event in batch.events if event.name != "stack"
    ]
    assert ("c", "CREATE_COMPLETE") in states and ("b", "DELETE_COMPLETE") in states
    assert read(fleet, reader).events == []
    again = read(fleet, StackReader(stack.id, fleet.world.project, str(first.id)))
    assert [event.data for event in again.events] == [event.data for event in batch.events]
    nothing = read(fleet, StackReader(stack.id, fleet.world.project, str(batch.events[-1].id)))
    assert [event.name for event in nothing.events] == ["stack"]


def test_a_cursor_whose_events_were_deleted_is_too_old(heat, fleet):
    stack = heat.create(template({"a": config()}))
    (first,) = read(fleet, StackReader(stack.id, fleet.world.project, "")).events
    heat.update(stack, template({"b": config()}))
    heat.store.write(lambda tx: events.purge(tx, tx.now, 1000))
    batch = read(fleet, StackReader(stack.id, fleet.world.project, str(first.id)))
    assert [event.name for event in batch.events] == ["resync", "stack"]
    with pytest.raises(EntityNotFound):
        read(fleet, StackReader(stack.id, "another", ""))


def test_several_subjects_have_one_cursor(heat, fleet):
    stack = heat.create(template({"a": config()}))
    trigger = fleet.trigger_over(2)
    one, other = fleet.running(trigger)
    subjects = {"stack": f"stack:{stack.id}", "trigger": f"trigger:{trigger.id}"}
    kinds = frozenset(("state", "stack", "resource"))

    def open_stream(cursor: str = "") -> SubjectsReader:
        positions = parse_cursor(cursor, subjects.values())
        classes = {"stack": StackReader, "trigger": TriggerReader}
        return SubjectsReader(
            {
                subject: classes[noun](
                    subject.partition(":")[2], fleet.world.project, positions.get(subject, ""), kinds
                )
                for noun, subject in subjects.items()
            },
            cursor,
        )

    stream = open_stream()
    batch = read(fleet, stream)
    assert names(batch) == [("stack", subjects["stack"]), *[("state", subjects["trigger"])] * 2]
    fleet.end(one)
    assert read(fleet, stream, {stack_topic(stack.id)}).events == []
    ended = read(fleet, stream, {trigger_topic(trigger.id)})
    assert names(ended) == [("state", subjects["trigger"])]
    heat.update(stack, template({"b": config()}))
    again = read(fleet, open_stream(str(ended.events[-1].id)))
    assert {event.data["resource_name"] for event in again.events if event.name == "resource"} == {"a", "b"}
    assert [event.data.position for event in again.events if event.name == "state"] == [1]
    fleet.end(other)
    last = read(fleet, stream)
    assert (names(last)[-1], last.over) == (("end", subjects["trigger"]), False)
    assert set(stream.topics()) == {stack_topic(stack.id)}


def test_lists_announce_changes_of_their_objects(site):
    app, project = site.services, site.project
    topics: set[str] = set()
    app.store.notifier.subscribe(topics.update)
    readers = {noun: ListReader(app, project, noun) for noun in ("servers", "stacks", "triggers")}

    def changed(noun: str) -> bool:
        reader = readers[noun]
        with app.store.read() as tx:
            return bool(reader.read(tx, topics & set(reader.topics())).events)

    def call(verb: str, path: str, body: Any = None) -> tuple[Any, list[str]]:
        """Return the answer, and whose lists announce a change."""
        topics.clear()
        answer = site.call(verb, path, body)
        return answer, [noun for noun in readers if changed(noun)]

    for reader in readers.values():
        with app.store.read() as tx:
            assert reader.read(tx, None).events == []
    answer, announced = call("POST", "/servers", {"name": "web1"})
    assert announced == ["servers"]
    server = answer["server"]["id"]
    assert call("PATCH", f"/servers/{server}", {"labels": {"tier": "web"}})[1] == ["servers"]
    answer, announced = call("POST", "/stacks", {"stack_name": "shop", "template": template({"a": config()})})
    assert "stacks" in announced
    assert "stacks" in call("DELETE", f"/stacks/shop/{answer['stack']['id']}")[1]
    answer, _ = call("POST", "/software_configs", {"name": "c", "group": "script", "config": "true"})
    body = {"config_id": answer["software_config"]["id"], "servers": [server]}
    assert "triggers" in call("POST", "/software_triggers", body)[1]


def test_a_list_that_is_read_as_a_whole_announces_its_change_once(site):
    reader = ListReader(site.services, site.project, "servers")

    def read_all():
        with site.services.store.read() as tx:
            return [event.name for event in reader.read(tx, None).events]

    assert read_all() == []
    site.call("POST", "/servers", {"name": "web1"})
    assert (read_all(), read_all()) == (["changed"], [])
