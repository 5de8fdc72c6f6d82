"""Every entry of the catalog is valid, documented, usable as a type, and never changes once it is published."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from stoker import hot
from stoker.catalog import entry as entries
from stoker.catalog import shipped
from stoker.deployments import schema
from stoker.hot.text import read
from support.templates import server, template

#: SHA-256 of the published entries and libraries. A change of one is a new version, and a new line here.
PUBLISHED = Path(__file__).with_name("published.json")
ENTRIES = [f"{name}/{version}" for name, version in shipped.list_entries()]


def text_of(reference: str) -> str:
    name, version = reference.split("/")
    text = shipped.find_entry(name, int(version))
    assert text is not None
    return text


def load(reference: str) -> entries.Entry:
    return entries.parse(read(text_of(reference), "Catalog entry", 1_000_000))


def digest(text: str | None) -> str:
    assert text is not None
    return hashlib.sha256(text.encode()).hexdigest()


def test_published_entries_never_change():
    present = {reference: digest(text_of(reference)) for reference in ENTRIES}
    present |= {f"library {name}": digest(shipped.find_library(name)) for name in shipped.list_libraries()}
    assert present == json.loads(PUBLISHED.read_text())
    assert len(ENTRIES) >= 15


@pytest.mark.parametrize("reference", ENTRIES)
def test_an_entry_is_valid_and_documented(reference):
    entry = load(reference)
    assert (f"{entry.name}/{entry.version}", entries.is_entry_text(text_of(reference))) == (reference, True)
    schema.inputs(entry.config_inputs())
    schema.outputs(entry.config_outputs())
    for item in (*entry.inputs, *entry.outputs):
        assert len(item.description) > 5, item.name
        assert not item.description.endswith("."), item.name
    parameters = hot.parse(text_of(reference)).parameters
    assert list(parameters) == ["server", *(item.name for item in entry.inputs)]
    assert {name for name, parameter in parameters.items() if parameter.hidden} == {
        item.name for item in entry.inputs if item.secret is True
    }
    if entry.group == "python":
        compile(entry.source(), reference, "exec")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)  # entries are templates, like any other
@pytest.mark.parametrize("reference", ENTRIES)
def test_the_example_of_an_entry_is_a_stack(heat, reference):
    entry = load(reference)
    properties = {**entry.example, "server": {"get_resource": "machine"}}
    app = {"type": entry.reference, "properties": properties}
    outputs = {name: {"value": {"get_attr": ["app", name]}} for name in (item.name for item in entry.outputs)}
    files = {entry.reference: text_of(reference)}
    stack = heat.create(template({"machine": server(), "app": app}, outputs=outputs), files=files)
    assert str(stack.status) == "IN_PROGRESS", stack.status_reason
    [deployment] = heat.deployments()
    values = {"result": "x", **{item.name: f"value of {item.name}" for item in entry.outputs}}
    heat.report(deployment, **values)
    assert str(heat.settled(stack.id).status) == "COMPLETE"
    assert heat.outputs(heat.settled(stack.id)) == {item.name: values[item.name] for item in entry.outputs}
