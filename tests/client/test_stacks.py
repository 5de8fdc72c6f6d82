"""Stacks on the command line."""

import json
from xml.etree import ElementTree

import pytest
import yaml

from support.http_stub import Said
from support.tools import find_tool

pytestmark = pytest.mark.slow

VALUES = "heat_template_version: 2021-04-16\nresources: {a: {type: OS::Heat::Value, properties: {value: 1}}}\n"


def test_a_stack_is_found_by_name_id_and_both(site, stoker, client):
    assert stoker("stack", "list").out.startswith("Stack Name")
    assert stoker("stack", "list", "-o", "json").out == "[]\n"
    stack = site.create_stack("web")

    for ref in ("web", stack["id"], f"web/{stack['id']}"):
        assert stoker("stack", "show", ref, "-o", "json").data["id"] == stack["id"]
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
    assert stoker("stack", "outputs", "web", "map").data == {"a": ["b"]}
    assert stoker("stack", "outputs", "web", "text", "-o", "json").data == "two\nlines"
    assert "lines" in stoker("stack", "outputs", "web").out
    assert len(stoker("stack", "outputs", "web", "-o", "json").data) == 2
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
    template = stoker("stack", "template", "web", "-o", "json").data
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


#: A deployment without a signal, and an output that is the parameter ``word``.
RUN = """\
heat_template_version: 2018-08-31
parameters: {word: {type: string, default: one}}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: {get_param: word}}
  server: {type: OS::Heat::DeployedServer, properties: {name: m}}
  run:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: {get_resource: server}, signal_transport: NO_SIGNAL}
outputs: {word: {value: {get_attr: [config, config]}}}
"""


@pytest.fixture
def web(site, nowhere):
    """A function that returns the state of the stack ``web``, and its word. Its template is in ``t.yaml``."""
    (nowhere / "t.yaml").write_text(RUN)
    site.create_stack("web", RUN)

    def show() -> tuple[str, str]:
        [stack] = site.api("GET", "/stacks")["stacks"]
        shown = site.api("GET", f"/stacks/web/{stack['id']}")["stack"]
        return shown["stack_status"], shown["outputs"][0]["output_value"]

    return show


UPDATE = ("stack", "update", "web", "-t", "t.yaml", "-P")


def test_suspend_resume_and_check_run(stoker, web):
    for words in (("suspend", "web", "--wait"), ("resume", "web", "--wait"), ("check", "web")):
        assert stoker("stack", *words).code == 0
        assert web() == (f"{words[0].upper()}_COMPLETE", "one")
    refused = stoker("stack", "cancel", "web")
    assert (refused.code, refused.err.count("\n")) == (5, 1)
    assert "only in UPDATE_IN_PROGRESS or CREATE_IN_PROGRESS" in refused.err


def test_a_dry_run_lists_changes_and_servers(stoker, web):
    *shown, plan = stoker(*UPDATE, "word=two", "--dry-run").out.splitlines()
    assert shown == [
        "~ run (OS::Heat::SoftwareDeployment) is updated in place: config differs",
        "± config (OS::Heat::SoftwareConfig) is replaced: config differs",
        "    config: one → two",
        "0 added, 1 updated, 1 replaced, 0 deleted, 1 unchanged",
        "runs: UPDATE of run on m",
    ]
    assert web() == ("CREATE_COMPLETE", "one")
    word, digest = plan.split()
    assert word == "plan"
    refused = stoker(*UPDATE, "word=three", "--plan", digest)
    assert (refused.code, f"The plan {digest} is out of date" in refused.err) == (5, True)
    assert stoker(*UPDATE, "word=two", "--plan", digest, "--wait").code == 0
    assert web() == ("UPDATE_COMPLETE", "two")


def test_snapshots_are_created_and_restored(stoker, web):
    taken = stoker("snapshot", "create", "web", "before", "-o", "json").data
    assert stoker(*UPDATE, "word=two", "--wait").code == 0
    assert [each["name"] for each in stoker("snapshot", "list", "web", "-o", "json").data] == ["before"]
    assert stoker("snapshot", "restore", "web", taken["id"], "--wait").code == 0
    assert web() == ("RESTORE_COMPLETE", "one")
    assert stoker("snapshot", "delete", "--yes", "web", taken["id"]).code == 0
    assert stoker("snapshot", "list", "web", "-o", "json").data == []


def test_a_stack_is_abandoned_and_adopted(stoker, web, nowhere):
    file = nowhere / "left.json"
    exported = json.loads(stoker("stack", "export", "web").out)
    assert stoker("stack", "abandon", "web", "--output-file", str(file)).code == 0
    assert json.loads(file.read_text())["resources"] == exported["resources"]
    assert file.stat().st_mode & 0o077 == 0
    assert stoker("stack", "adopt", "web", str(file), "--wait").code == 0
    assert web() == ("ADOPT_COMPLETE", "one")
    assert stoker("stack", "adopt", "other", str(nowhere)).code == 2


def test_the_data_of_an_abandoned_stack_is_printed_if_its_file_cannot_be_written(stoker, web):
    exported = json.loads(stoker("stack", "export", "web").out)
    left = stoker("stack", "abandon", "web", "--output-file", "/dev/full")
    assert (left.code, "cannot write /dev/full" in left.err) == (2, True)
    assert json.loads(left.out)["resources"] == exported["resources"]


def test_a_dry_run_and_a_validation_create_nothing(site, stoker, web, nowhere):
    shown = stoker("stack", "create", "new", "-t", "t.yaml", "-P", "word=x", "--dry-run", "-o", "json").data
    assert {each["resource_name"] for each in shown["added"]} == {"config", "server", "run"}
    found = stoker("template", "validate", "-t", "t.yaml", "-o", "json").data
    assert found["Parameters"]["word"]["Default"] == "one"
    (nowhere / "wrong.yaml").write_text(RUN.replace("OS::Heat::DeployedServer", "No::Such"))
    wrong = stoker("template", "validate", "-t", "wrong.yaml")
    assert (wrong.code, "No::Such" in wrong.err, "line 7" in wrong.err) == (5, True, True)
    assert len(site.api("GET", "/stacks")["stacks"]) == 1


def test_warnings_and_all_errors_are_printed(site, stoker, nowhere):
    (nowhere / "odd.yaml").write_text("heat_template_version: 2018-08-31\noutputs: {o: {value: {get_param: absent}}}\n")
    assert stoker("template", "validate", "-t", "odd.yaml").err.startswith("Warning: outputs.o: The Parameter (absent)")
    (nowhere / "wrong.yaml").write_text("heat_template_version: 2018-08-31\nresources: {a: {type: A}, b: {type: B}}\n")
    wrong = stoker("stack", "create", "wrong", "-t", "wrong.yaml")
    assert wrong.code == 5
    assert [line.partition(")")[0] for line in wrong.err.splitlines()] == [
        "stoker: The Resource Type (A",
        "The Resource Type (B",
    ]


def test_a_graph_is_drawn(stoker, web, nowhere):
    find_tool("dot")
    assert stoker("stack", "graph", "web", "--output-file", "g.svg").code == 0
    texts = [each.text for each in ElementTree.parse(nowhere / "g.svg").iter("{http://www.w3.org/2000/svg}text")]
    assert {"server", "run", "SoftwareDeployment: config", "m"} <= set(texts)
    assert stoker("stack", "graph", "web", "--format", "png", "--output-file", "g.png").code == 0
    assert (nowhere / "g.png").read_bytes().startswith(b"\x89PNG")


def test_types_and_functions_are_listed(site, stoker):
    listed = stoker("resource-type", "list", "-o", "json").data
    assert "OS::Heat::SoftwareDeployment" in [each["resource_type"] for each in listed]
    shown = stoker("resource-type", "show", "OS::Heat::RandomString", "-o", "json").data
    assert shown["properties"]["length"]["type"] == "integer"
    assert "resources:" in stoker("resource-type", "show", "OS::Heat::RandomString", "--template").out
    versions = stoker("template", "functions", "-o", "json").data
    assert "heat_template_version.2021-04-16" in [each["version"] for each in versions]
    functions = stoker("template", "functions", "wallaby", "-o", "json").data
    assert "get_attr" in [each["functions"] for each in functions]
