"""Stacks on the command line."""

import json

import pytest
import yaml

from client.little_heat import Frame, resource

pytestmark = pytest.mark.slow

TEMPLATE = "heat_template_version: 2021-04-16\nparameters: {size: {type: string}}\n"
SCRIPTED = TEMPLATE + "outputs: {o: {value: {get_file: go.sh}}}\n"


@pytest.fixture
def template(nowhere):
    (nowhere / "web.yaml").write_text(TEMPLATE)
    (nowhere / "scripted.yaml").write_text(SCRIPTED)
    (nowhere / "go.sh").write_text("echo")
    return "web.yaml"


def sent(heat, method: str):
    [body] = [body for verb, path, body in heat.bodies if verb == method and "tokens" not in path]
    return body


def test_create_sends_the_options(heat, stoker, template, nowhere):
    (nowhere / "env.yaml").write_text("parameters: {size: s}\n")
    (nowhere / "key").write_text("line 1\nline 2\n")

    result = stoker(
        "stack", "create", "web", "-t", "scripted.yaml", "-e", "env.yaml", "-P", "size=a=b", "-P", "empty=",
        "--parameter-file", "key=key", "--timeout", "5", "--rollback", "--tags", "a,b",
    )  # fmt: skip

    assert result.code == 0, result.err
    assert sent(heat, "POST") == {
        "stack_name": "web",
        "template": SCRIPTED,
        "files": {"go.sh": "echo", "env.yaml": "parameters: {size: s}\n"},
        "environment_files": ["env.yaml"],
        "environment": {"parameters": {"size": "s"}},
        "parameters": {"size": "a=b", "empty": "", "key": "line 1\nline 2\n"},
        "timeout_mins": 5,
        "disable_rollback": False,
        "tags": "a,b",
    }


def test_create_prints_the_stack(heat, stoker, template):
    result = stoker("stack", "create", "web", "-t", template, "-o", "json")

    shown = json.loads(result.out)
    assert shown["stack_name"] == "web"
    assert shown["stack_status"] == "CREATE_COMPLETE"
    assert result.err == ""


def test_create_needs_a_template(heat, stoker):
    result = stoker("stack", "create", "web")

    assert result.code == 2
    assert heat.calls == []


def test_create_sends_nothing_when_a_file_is_missing(heat, stoker, template, nowhere):
    (nowhere / "go.sh").unlink()

    result = stoker("stack", "create", "web", "-t", "scripted.yaml")

    assert result.code == 2
    assert "go.sh (named by scripted.yaml)" in result.err
    assert heat.calls == []


def test_create_prints_heats_error_for_a_used_name(heat, stoker, template):
    heat.add_stack("web")

    result = stoker("stack", "create", "web", "-t", template)

    assert result.err == "stoker: The Stack (web) already exists.\n"


def test_update_sends_a_put_request(heat, stoker, template):
    heat.add_stack("web")

    result = stoker("stack", "update", "web", "-t", template, "-P", "size=l")

    assert result.code == 0
    assert sent(heat, "PUT") == {"template": TEMPLATE, "files": {}, "parameters": {"size": "l"}}


def test_update_existing_sends_a_patch_request(heat, stoker):
    heat.add_stack("web")

    result = stoker("stack", "update", "web", "--existing", "--clear-parameter", "size", "--no-rollback")

    assert result.code == 0
    assert sent(heat, "PATCH") == {
        "files": {},
        "parameters": {},
        "clear_parameters": ["size"],
        "disable_rollback": True,
    }


@pytest.mark.parametrize("args", [[], ["-t", "web.yaml", "--clear-parameter", "x"]])
def test_update_refuses_contradicting_options(heat, stoker, template, args):
    assert stoker("stack", "update", "web", *args).code == 2
    assert heat.calls == []


def test_update_can_enable_rollback(heat, stoker, template):
    heat.add_stack("web")

    stoker("stack", "update", "web", "-t", template, "--rollback")

    assert sent(heat, "PUT")["disable_rollback"] is False


@pytest.mark.parametrize("form", ["name", "id", "name/id"])
def test_a_stack_is_found_by_name_id_and_both(heat, stoker, form):
    stack = heat.add_stack("web")
    ref = {"name": "web", "id": stack["id"], "name/id": f"web/{stack['id']}"}[form]

    assert json.loads(stoker("stack", "show", ref, "-o", "json").out)["id"] == stack["id"]
    assert stoker("stack", "resources", ref).code == 0
    assert stoker("stack", "events", ref).code == 0
    assert stoker("stack", "template", ref).code == 0


def test_a_redirect_is_followed_once(heat, client):
    heat.add_stack("web")

    client.stacks.show("web", outputs=False)

    assert heat.calls[-1][1].count("resolve_outputs") == 1


def test_list_prints_a_table(heat, stoker):
    stack = heat.add_stack("web")

    lines = stoker("stack", "list").out.splitlines()

    assert lines[0].split() == ["Stack", "Name", "ID", "Stack", "Status", "Creation", "Time"]
    assert lines[1].split() == ["web", stack["id"], "CREATE_COMPLETE", "2031-05-06T07:08:09Z"]


def test_an_empty_list_is_a_header_or_an_empty_array(heat, stoker):
    assert stoker("stack", "list").out.startswith("Stack Name")
    assert stoker("stack", "list", "-o", "json").out == "[]\n"


def test_show_as_table_has_outputs_as_yaml(heat, stoker):
    heat.add_stack("web")
    heat.outputs = [{"output_key": "url", "output_value": ["a", "b"]}]

    shown = stoker("stack", "show", "web").out

    assert "url:" in shown
    assert "- a" in shown


def test_yaml_output_is_the_object(heat, stoker):
    stack = heat.add_stack("web")

    assert yaml.safe_load(stoker("stack", "show", "web", "-o", "yaml").out)["id"] == stack["id"]


def test_outputs_are_listed_and_shown(heat, stoker):
    heat.add_stack("web")
    heat.outputs = [
        {"output_key": "text", "output_value": "two\nlines", "description": "d"},
        {"output_key": "map", "output_value": {"a": 1}, "description": ""},
    ]

    assert stoker("stack", "outputs", "web", "text").out == "two\nlines\n"
    assert json.loads(stoker("stack", "outputs", "web", "map").out) == {"a": 1}
    assert json.loads(stoker("stack", "outputs", "web", "text", "-o", "json").out) == "two\nlines"
    assert "lines" in stoker("stack", "outputs", "web").out
    assert len(json.loads(stoker("stack", "outputs", "web", "-o", "json").out)) == 2
    assert stoker("stack", "outputs", "web", "nope").code == 4


def test_the_error_of_an_output_is_shown(heat, stoker):
    heat.add_stack("web")
    heat.outputs = [{"output_key": "k", "output_value": None, "output_error": "no such attribute"}]

    assert "no such attribute" in stoker("stack", "outputs", "web").out
    result = stoker("stack", "outputs", "web", "k")
    assert (result.code, result.err) == (1, "stoker: output k has an error: no such attribute\n")


def test_template_show_prints_yaml_unless_json_is_requested(heat, stoker):
    heat.add_stack("web")

    assert yaml.safe_load(stoker("stack", "template", "web").out)["heat_template_version"] == "2021-04-16"
    assert json.loads(stoker("stack", "template", "web", "-o", "json").out)["resources"] == {}


def test_resources_keep_the_order_of_the_service(heat, stoker):
    heat.add_stack("web")
    heat.life = [Frame("CREATE_COMPLETE", "", [resource("b", "CREATE_COMPLETE"), resource("a", "INIT_COMPLETE")])]

    assert [line.split()[0] for line in stoker("stack", "resources", "web").out.splitlines()[1:]] == ["b", "a"]


def events(heat, stack) -> None:
    states = [("web", "CREATE_IN_PROGRESS"), ("a", "CREATE_COMPLETE"), ("web", "DELETE_COMPLETE")]
    heat.events = [
        {
            "id": str(number),
            "event_time": "T",
            "resource_name": name,
            "resource_status": status,
            "physical_resource_id": stack["id"] if name == "web" else "x",
        }
        for number, (name, status) in enumerate(states)
    ]


def test_events_are_listed(heat, stoker):
    events(heat, heat.add_stack("web"))

    assert [line.split()[1] for line in stoker("stack", "events", "web").out.splitlines()[1:]] == ["web", "a"]


def test_follow_prints_events_until_the_operation_ends(heat, stoker):
    events(heat, heat.add_stack("web"))

    result = stoker("stack", "events", "web", "--follow", "-o", "json")

    assert [json.loads(line)["id"] for line in result.out.splitlines()] == ["0", "1", "2"]


def test_delete_asks_unless_yes_is_set(heat, stoker, monkeypatch):
    heat.add_stack("web")
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)

    result = stoker("stack", "delete", "web")

    assert (result.code, heat.calls) == (2, [])
    assert "--yes" in result.err


def test_delete_continues_after_a_failure(heat, stoker):
    heat.add_stack("web")

    result = stoker("stack", "delete", "nope", "web", "--yes", "--wait")

    assert result.code == 4
    assert result.err.startswith("stoker: The Stack (nope) could not be found")
    assert heat.stacks == {}


@pytest.mark.parametrize("verb", ["create", "update"])
def test_a_preview_on_servers_needs_a_dry_run(heat, stoker, nowhere, verb):
    (nowhere / "t.yaml").write_text("heat_template_version: 2021-04-16\n")
    refused = stoker("stack", verb, "shop", "-t", "t.yaml", "--on-servers")
    assert (refused.code, "--on-servers needs --dry-run" in refused.err) == (2, True)
    assert heat.stacks == {}
