"""Stacks on the command line."""

import json

import pytest
import yaml

from support.http_stub import Said

pytestmark = pytest.mark.slow

TEMPLATE = "heat_template_version: 2021-04-16\nparameters: {size: {type: string, default: s}}\n"
VALUES = "heat_template_version: 2021-04-16\nresources: {a: {type: OS::Heat::Value, properties: {value: 1}}}\n"


@pytest.fixture
def template(nowhere):
    (nowhere / "web.yaml").write_text(TEMPLATE)
    return "web.yaml"


def test_create_prints_the_stack(site, stoker, template):
    result = stoker("stack", "create", "web", "-t", template, "-o", "json")

    shown = json.loads(result.out)
    assert (shown["stack_name"], result.err) == ("web", "")
    assert shown["stack_status"].startswith("CREATE_")


def test_a_stack_is_found_by_name_id_and_both(site, stoker, client):
    assert stoker("stack", "list").out.startswith("Stack Name")
    assert stoker("stack", "list", "-o", "json").out == "[]\n"
    stack = site.create_stack("web")

    for ref in ("web", stack["id"], f"web/{stack['id']}"):
        assert json.loads(stoker("stack", "show", ref, "-o", "json").out)["id"] == stack["id"]
        for command in ("resources", "events", "template"):
            assert stoker("stack", command, ref).code == 0
    unwritten = stoker("stack", "graph", "web", "--format", "dot", "--output-file", "gone/g.dot")
    error = "stoker: cannot write gone/g.dot (named by --output-file): No such file or directory\n"
    assert (unwritten.code, unwritten.err) == (2, error)
    client.stacks.show("web", outputs=False)
    assert site.calls[-1][1].count("resolve_outputs") == 1, "a redirect is followed once"
    head, row = stoker("stack", "list").out.splitlines()
    assert head.split() == ["Stack", "Name", "ID", "Stack", "Status", "Creation", "Time"]
    assert row.split() == ["web", stack["id"], "CREATE_COMPLETE", stack["creation_time"]]
    assert stoker("stack", "list", "--contains", "absent", "-o", "json").out == "[]\n"


def test_outputs_are_listed_and_shown(site, stoker):
    values = 'outputs: {text: {value: "two\\nlines", description: d}, map: {value: {a: [b]}}}'
    site.create_stack("web", f"heat_template_version: 2021-04-16\n{values}")

    assert stoker("stack", "outputs", "web", "text").out == "two\nlines\n"
    assert json.loads(stoker("stack", "outputs", "web", "map").out) == {"a": ["b"]}
    assert json.loads(stoker("stack", "outputs", "web", "text", "-o", "json").out) == "two\nlines"
    assert "lines" in stoker("stack", "outputs", "web").out
    assert len(json.loads(stoker("stack", "outputs", "web", "-o", "json").out)) == 2
    assert stoker("stack", "outputs", "web", "nope").code == 4
    shown = stoker("stack", "show", "web").out
    assert "map:" in shown
    assert "- b" in shown, "a table has outputs as YAML"


def test_the_error_of_an_output_is_shown(site, stoker):
    stack = site.create_stack("web", "heat_template_version: 2021-04-16\noutputs: {k: {value: 1}}")
    output = {"output_key": "k", "output_value": None, "output_error": "no such attribute"}
    path = f"/stacks/web/{stack['id']}"
    site.change("GET", f"{path}/outputs/", lambda _: {"output": output})
    site.change("GET", path, lambda body: {"stack": {**body["stack"], "outputs": [output]}})

    assert "no such attribute" in stoker("stack", "outputs", "web").out
    result = stoker("stack", "outputs", "web", "k")
    assert (result.code, result.err) == (1, "stoker: output k has an error: no such attribute\n")


def test_the_parts_of_a_stack_are_shown_and_its_events_are_followed(site, stoker):
    stack = site.create_stack("web", VALUES)
    assert yaml.safe_load(stoker("stack", "template", "web").out)["heat_template_version"] == "2021-04-16"
    template = json.loads(stoker("stack", "template", "web", "-o", "json").out)
    assert template["resources"]["a"]["type"] == "OS::Heat::Value"
    listed = [line.split()[1] for line in stoker("stack", "events", "web").out.splitlines()[1:]]
    assert listed == ["web", "a", "a", "web"]

    path = f"/stacks/web/{stack['id']}"
    events = site.api("GET", f"{path}/events?sort_dir=asc")["events"]
    last = {**events[-1], "id": "last", "resource_status": "DELETE_COMPLETE"}
    site.change("GET", f"{path}/events", lambda body: {"events": body["events"] or [last]})
    result = stoker("stack", "events", "web", "--follow", "-o", "json")
    assert [json.loads(line)["id"] for line in result.out.splitlines()] == [*(event["id"] for event in events), "last"]

    [resource] = site.api("GET", f"{path}/resources")["resources"]
    resources = [{**resource, "resource_name": name} for name in "bca"]
    site.replace("GET", "/stacks/", Said(body={"resources": resources}))
    assert [line.split()[0] for line in stoker("stack", "resources", "web").out.splitlines()[1:]] == ["b", "c", "a"]


def test_delete_continues_after_a_failure(site, stoker):
    site.create_stack("web")

    result = stoker("stack", "delete", "nope", "web", "--yes", "--wait")

    assert result.code == 4
    assert result.err.startswith("stoker: The Stack (nope) could not be found")
    assert site.api("GET", "/stacks")["stacks"] == []
