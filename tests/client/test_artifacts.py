"""The catalog and stored hooks on the command line."""

import base64

import pytest

ENTRY = "stoker_catalog_version: 1\nname: {name}\nversion: {version}\ndescription: d\ngroup: script\nconfig: echo\n"


@pytest.fixture
def artifacts(site, nowhere):
    """A catalog entry besides those of Stoker, and two versions of a hook."""
    site.api("POST", "/catalog", {"text": ENTRY.format(name="greet", version=1)})
    for content in (b"one", b"two"):
        site.api("POST", "/hooks", {"name": "shout", "content": base64.b64encode(content).decode()})
    (nowhere / "hook").write_bytes(b"#!/bin/sh\n")
    for number, name in enumerate(("new", "greet", "new")):
        (nowhere / f"{name}{number}.yaml").write_text(ENTRY.format(name=name, version=1))
    (nowhere / "wrong.yaml").write_text("config: x\n")
    return site


#: words, the beginning of the output
SHOWN = [
    (("catalog", "list", "-o", "name"), "apt-repository/1\n"),
    (("catalog", "list", "-o", "csv", "-c", "origin", "-c", "name", "--sort", "origin"), "origin,name\nproject,greet"),
    (("catalog", "list", "--sort", "origin", "--limit", "1", "-o", "value"), "greet\t1\tproject\td\n"),
    (("catalog", "list"), "Name"),
    (("catalog", "show", "greet/1", "-o", "name"), "greet/1\n"),
    (("catalog", "show", "catalog://nginx/1", "-o", "value", "-c", "origin"), "stoker\n"),
    (("catalog", "show", "greet/1", "--text"), "stoker_catalog_version: 1\nname: greet\n"),
    (("catalog", "add", "new0.yaml", "-o", "name"), "new/1\n"),
    (("catalog", "add", "new0.yaml"), "Name"),
    (("catalog", "delete", "greet/1", "--yes"), "catalog entry greet/1 deleted\n"),
    (("hook", "list", "-o", "name"), "shout/1\nshout/2\n"),
    (("hook", "list", "-o", "csv", "-c", "version", "--sort", "version:desc"), "version\n2\n1\n"),
    (("hook", "list"), "Name"),
    (("hook", "show", "shout/2", "-o", "name"), "shout/2\n"),
    (("hook", "add", "shout", "hook", "-o", "name"), "shout/3\n"),
    (("hook", "add", "shout", "hook", "-o", "value", "-c", "version"), "3\n"),
    (("hook", "delete", "shout/1", "shout/2", "--yes"), "hook shout/1 deleted\nhook shout/2 deleted\n"),
]


@pytest.mark.parametrize(
    ("words", "shown"), SHOWN, ids=lambda value: " ".join(value) if isinstance(value, tuple) else ""
)
def test_output(artifacts, stoker, words, shown):
    result = stoker(*words)
    assert (result.code, result.err) == (0, "")
    assert result.out.lstrip().startswith(shown)


def test_data_are_the_objects_of_the_api_and_a_hook_is_written_to_a_file(artifacts, stoker, nowhere):
    entry = artifacts.api("GET", "/catalog/greet/1")["entry"]
    assert stoker("catalog", "show", "greet/1", "-o", "json").data == entry
    shown = stoker("hook", "show", "shout/1", "--file", "shout", "-o", "json").data
    assert shown["content"] == base64.b64encode(b"one").decode()
    assert (nowhere / "shout").read_bytes() == b"one"
    missing = stoker("hook", "show", "shout/1", "--file", "nowhere/shout")
    error = "stoker: cannot write nowhere/shout (named by --file): No such file or directory\n"
    assert (missing.code, missing.err) == (2, error)


def test_an_entry_for_all_projects_is_of_the_site(artifacts, stoker, use_admin):
    use_admin()
    (added,) = stoker("catalog", "add", "new0.yaml", "--public", "-o", "json").data
    assert (added["name"], added["origin"]) == ("new", "site")
    assert stoker("catalog", "delete", "new/1", "--yes").code == 0
