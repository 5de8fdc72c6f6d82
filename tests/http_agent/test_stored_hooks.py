"""Hooks and catalog entries stored in a real server, and who may use them."""

from __future__ import annotations

import base64
import hashlib
import uuid

import pytest

from support.accounts import create_account, create_project

_ENTRY = """\
stoker_catalog_version: 1
name: {name}
version: 1
description: A greeting
group: script
inputs:
- {{name: who, description: Whom to greet, default: world}}
outputs:
- {{name: greeting, description: The greeting}}
config: |
  #!/bin/sh
  printf "hello $who" > "$heat_outputs_path.greeting"
"""


@pytest.fixture
def name():
    return f"shout-{uuid.uuid4().hex[:8]}"


def add_hook(account, name, content=b"#!/bin/sh\n", **more):
    return account.heat("POST", "/hooks", {"name": name, "content": base64.b64encode(content).decode(), **more})


def create_config(account, hook):
    body = {"name": "c", "group": "shout", "config": "x", "options": {"hook": hook}}
    return account.heat("POST", "/software_configs", body)


def deploy(account, server_id, config, **more):
    body = {"server_id": server_id, "config_id": config["id"], **more}
    return account.heat("POST", "/software_deployments", body)


def test_versions_of_a_hook_count_up_and_never_change(stoker, name):
    first = add_hook(stoker, name, b"one").body["hook"]
    assert (first["version"], first["sha256"]) == (1, hashlib.sha256(b"one").hexdigest())
    assert add_hook(stoker, name, b"one").body["hook"] == first
    assert add_hook(stoker, name, b"two").body["hook"]["version"] == 2
    shown = stoker.heat("GET", f"/hooks/{name}/1").body["hook"]
    assert base64.b64decode(shown["content"]) == b"one"
    assert [hook["version"] for hook in stoker.heat("GET", "/hooks").body["hooks"] if hook["name"] == name] == [1, 2]
    assert stoker.heat("DELETE", f"/hooks/{name}/1").status == 204
    assert stoker.heat("GET", f"/hooks/{name}/1").status == 404
    assert add_hook(stoker, name, b"three").body["hook"]["version"] == 3


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 64, "a/b"])
def test_a_wrong_name_of_a_hook_is_refused_in_plain_words(stoker, name):
    refused = add_hook(stoker, name)
    assert refused.status == 400
    assert f"{name!r} is no name of a hook: it begins with a letter or a digit" in str(refused.body)
    assert "name must be a string, not a whole number" in str(add_hook(stoker, 3).body)


@pytest.mark.parametrize("content", ["", "no base64!", base64.b64encode(bytes(1024 * 1024 + 1)).decode()])
def test_a_hook_without_content_or_with_too_much_is_refused(stoker, name, content):
    assert stoker.heat("POST", "/hooks", {"name": name, "content": content}).status == 400


def test_a_config_has_the_newest_version_of_its_hook_for_good(stoker, agent, name):
    first = add_hook(stoker, name, b"one").body["hook"]
    config = create_config(stoker, name).body["software_config"]
    add_hook(stoker, name, b"two")
    expected = {"name": name, "version": 1, "url": f"/agent/v1/hooks/{first['sha256']}", "sha256": first["sha256"]}
    assert config["options"] == {"hook": expected}
    assert create_config(stoker, {"name": name, "version": 1}).body["software_config"]["options"] == config["options"]
    for more in ({}, {"signal_transport": "STOKER_SIGNAL"}):
        assert deploy(stoker, agent.id, config, **more).status == 200
    assert all(entry["options"] == {"hook": expected} for entry in agent.entries())
    fetched = stoker.request("GET", expected["url"], None, {"Authorization": f"Bearer {agent.key}"})
    assert (fetched.status, fetched.raw) == (200, b"one")


@pytest.mark.parametrize(
    "hook",
    [
        "no-such-hook",
        {"name": "no-such-hook", "version": 1},
        {"url": f"/agent/v1/hooks/{'0' * 64}", "sha256": "0" * 64},
        {"url": "ftp://example.org/hook", "sha256": "0" * 64},
        {"url": "https://example.org/hook"},
        {"url": "https://example.org/hook", "sha256": "abc"},
        ["shout"],
    ],
)
def test_a_config_with_a_hook_that_cannot_be_is_refused(stoker, hook):
    assert create_config(stoker, hook).status == 400


def test_policies_say_which_hooks_an_agent_fetches(stoker, agent, name):
    add_hook(stoker, name)
    config = create_config(stoker, name).body["software_config"]
    for word, status in (("NONE", 403), ("STORED", 200)):
        assert stoker.heat("PATCH", f"/servers/{agent.id}", {"policy": {"hooks": word}}).status == 200
        for more in ({}, {"signal_transport": "STOKER_SIGNAL"}):
            answer = deploy(stoker, agent.id, config, **more)
            assert (answer.status, "does not fetch the hook" in str(answer.raw)) == (status, status == 403)


def test_hooks_and_entries_belong_to_their_project_or_to_the_site(stoker, agent, name):
    elsewhere = create_account(stoker, "member", project=create_project(stoker))
    theirs = add_hook(elsewhere, name, b"theirs").body["hook"]
    path = f"/agent/v1/hooks/{theirs['sha256']}"
    assert stoker.heat("GET", f"/hooks/{name}/1").status == 404
    assert create_config(stoker, name).status == 400
    assert stoker.request("GET", path, None, {"Authorization": f"Bearer {agent.key}"}).status == 404
    assert add_hook(elsewhere, f"{name}-all", public=True).status == 403
    assert add_hook(stoker, f"{name}-all", public=True).body["hook"]["public"] is True
    assert create_config(elsewhere, f"{name}-all").status in (200, 201)
    assert elsewhere.heat("DELETE", f"/hooks/{name}-all/1").status == 403
    text = _ENTRY.format(name=name)
    assert elsewhere.heat("POST", "/catalog", {"text": text}).status == 201
    assert stoker.heat("GET", f"/catalog/{name}/1").status == 404
    assert elsewhere.heat("POST", "/catalog", {"text": text, "public": True}).status == 403
    assert elsewhere.heat("GET", f"/catalog/{name}/1").body["entry"]["origin"] == "project"


def test_an_entry_of_a_user_is_a_type_and_a_config(stoker, agent, name):
    text = _ENTRY.format(name=name)
    assert stoker.heat("POST", "/catalog", {"text": text}).body["entry"]["name"] == name
    assert stoker.heat("POST", "/catalog", {"text": text}).status == 409
    template = f"""
heat_template_version: 2021-04-16
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {{config: {{get_file: 'catalog://{name}/1'}}}}
  one:
    type: OS::Heat::SoftwareDeployment
    properties: {{config: {{get_resource: config}}, server: {agent.id}, input_values: {{who: config}}}}
  two:
    type: catalog://{name}/1
    properties: {{server: {agent.id}, who: type}}
outputs:
  greeting: {{value: {{get_attr: [two, greeting]}}}}
"""
    stack = stoker.create_stack(name, template)
    entries = agent.entries()
    inputs = [{item["name"]: item["value"] for item in entry["inputs"]} for entry in entries]
    assert {values["who"] for values in inputs} == {"config", "type"}
    assert {entry["group"] for entry in entries} == {"script"}
    for entry in entries:
        assert entry["config"].startswith("#!/bin/sh\n")
        assert agent.finish(entry["id"], greeting="hello").status == 200
    assert stoker.heat("DELETE", f"/catalog/{name}/1").status == 204  # the stack keeps its copy
    stoker.await_stack(stack)
    assert stoker.outputs(stack) == {"greeting": "hello"}
    unknown = stoker.heat("POST", "/stacks", {"stack_name": f"{name}-2", "template": template})
    assert unknown.status == 400


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("heat_template_version: 2021-04-16", "begins with"),
        ("stoker_catalog_version: 2\nname: x", "stoker_catalog_version 2 is none of 1"),
        (_ENTRY.format(name="Nginx"), "lower-case"),
        (_ENTRY.format(name="nginx"), "Stoker ships nginx/1"),
        (_ENTRY.format(name="x").replace("name: who", "name: server"), "neither 'server'"),
        (_ENTRY.format(name="x").replace("default: world", "default: [1"), "not in valid format"),
        (_ENTRY.format(name="x").replace("group: script", "library: no/1\ngroup: python"), "no library 'no/1'"),
        (_ENTRY.format(name="x").replace(", default: world", ", constraints: [{wrong: 1}]"), "Invalid key 'wrong'"),
        (_ENTRY.format(name="x") + "actions: [DELET]\n", "actions[0] 'DELET' is none of CREATE, UPDATE, DELETE"),
        (_ENTRY.format(name="x") + "extra: 1\n", "unknown member 'extra'"),
    ],
)
def test_an_entry_with_an_error_is_refused(stoker, text, problem):
    answer = stoker.heat("POST", "/catalog", {"text": text})
    assert (answer.status in (400, 409), problem in str(answer.body)) == (True, True), answer.raw


def test_shipped_entries_are_listed_and_cannot_be_deleted(stoker):
    listed = {f"{item['name']}/{item['version']}": item for item in stoker.heat("GET", "/catalog").body["entries"]}
    assert listed["nginx/1"]["origin"] == "stoker"
    entry = stoker.heat("GET", "/catalog/nginx/1").body["entry"]
    assert {item["name"] for item in entry["inputs"]} >= {"site", "port", "root"}
    assert stoker.heat("DELETE", "/catalog/nginx/1").status == 409
    assert stoker.heat("GET", "/catalog/nginx/99").status == 404
