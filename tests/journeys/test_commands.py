"""The `stoker` command on a stack's whole life, against a real Stoker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest

from support.server import Served, served
from support.tools import find_tool

TEMPLATE = """\
heat_template_version: 2018-08-31
parameters: {word: {type: string, default: one}}
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: {get_param: word}, outputs: [{name: said}]}
  server: {type: OS::Heat::DeployedServer, properties: {name: m}}
  run:
    type: OS::Heat::SoftwareDeployment
    properties:
      {config: {get_resource: config}, server: {get_resource: server}, signal_transport: NO_SIGNAL,
       actions: [CREATE, UPDATE]}
outputs: {word: {value: {get_attr: [config, config]}}}
"""


@pytest.fixture(scope="module")
def stoker(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("commands")) as running:
        yield running


@pytest.fixture
def template(tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(TEMPLATE)
    return str(file)


@pytest.fixture
def stack(stoker, template, request):
    name = f"s-{abs(hash(request.node.name)) % 10**8}"
    stoker.run("stack", "create", name, "-t", template, "--wait")
    yield name
    stoker.run("stack", "delete", name, "--yes", "--wait", check=False)


def state(stoker, stack):
    return stoker.json("stack", "show", stack)["stack_status"]


def word(stoker, stack):
    return stoker.run("stack", "outputs", stack, "word").stdout.strip()


def test_suspend_resume_and_check_run(stoker, stack):
    stoker.run("stack", "suspend", stack, "--wait")
    assert state(stoker, stack) == "SUSPEND_COMPLETE"
    stoker.run("stack", "resume", stack, "--wait")
    stoker.run("stack", "check", stack)
    assert state(stoker, stack) == "CHECK_COMPLETE"
    done = stoker.run("stack", "cancel", stack, check=False)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (5, 1)
    assert "only in UPDATE_IN_PROGRESS or CREATE_IN_PROGRESS" in done.stderr


def test_a_dry_run_lists_changes_and_servers(stoker, stack, template):
    before = stoker.json("stack", "show", stack)
    change = ("stack", "update", stack, "-t", template, "-P", "word=two")
    *shown, plan = stoker.run(*change, "--dry-run").stdout.splitlines()
    assert shown == [
        "~ run (OS::Heat::SoftwareDeployment) is updated in place: config differs",
        "± config (OS::Heat::SoftwareConfig) is replaced: config differs",
        "    config: one → two",
        "0 added, 1 updated, 1 replaced, 0 deleted, 1 unchanged",
        "runs: UPDATE of run on m",
    ]
    assert stoker.json("stack", "show", stack) == before
    word, digest = plan.split()
    assert word == "plan"
    refused = stoker.run(*change[:-1], "word=three", "--plan", digest, check=False)
    assert refused.returncode == 5  # the service refused the request
    assert f"The plan {digest} is out of date" in refused.stderr
    stoker.run(*change, "--plan", digest, "--wait")


def test_snapshots_are_created_and_restored(stoker, stack, template):
    taken = stoker.json("snapshot", "create", stack, "before")
    stoker.run("stack", "update", stack, "-t", template, "-P", "word=two", "--wait")
    assert word(stoker, stack) == "two"
    assert [each["name"] for each in stoker.json("snapshot", "list", stack)] == ["before"]
    stoker.run("snapshot", "restore", stack, taken["id"], "--wait")
    assert word(stoker, stack) == "one"
    stoker.run("snapshot", "delete", "--yes", stack, taken["id"])
    assert stoker.json("snapshot", "list", stack) == []


def test_a_stack_is_abandoned_and_adopted(stoker, stack, tmp_path):
    file = tmp_path / "left.json"
    exported = json.loads(stoker.run("stack", "export", stack).stdout)
    stoker.run("stack", "abandon", stack, "--output-file", str(file))
    assert json.loads(file.read_text())["resources"] == exported["resources"]
    assert file.stat().st_mode & 0o077 == 0
    stoker.run("stack", "adopt", stack, str(file), "--wait")
    assert state(stoker, stack) == "ADOPT_COMPLETE"
    assert word(stoker, stack) == "one"


def test_a_dry_run_and_a_validation_create_nothing(stoker, template, tmp_path):
    before = stoker.json("stack", "list")
    shown = stoker.json("stack", "create", "new", "-t", template, "-P", "word=x", "--dry-run")
    assert {each["resource_name"] for each in shown["added"]} == {"config", "server", "run"}
    found = stoker.json("template", "validate", "-t", template)
    assert found["Parameters"]["word"]["Default"] == "one"
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(TEMPLATE.replace("OS::Heat::DeployedServer", "No::Such"))
    done = stoker.run("template", "validate", "-t", str(wrong), check=False)
    assert done.returncode == 5
    assert "No::Such" in done.stderr
    assert "line 7" in done.stderr
    assert stoker.json("stack", "list") == before


def test_a_graph_is_drawn(stoker, stack, tmp_path):
    find_tool("dot")
    file = tmp_path / "g.svg"
    stoker.run("stack", "graph", stack, "--output-file", str(file))
    texts = [each.text for each in ET.parse(file).iter("{http://www.w3.org/2000/svg}text")]
    assert {"server", "run", "SoftwareDeployment: config", "m"} <= set(texts)
    stoker.run("stack", "graph", stack, "--format", "png", "--output-file", str(tmp_path / "g.png"))
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")


def test_types_and_functions_are_listed(stoker):
    assert "OS::Heat::SoftwareDeployment" in [each["resource_type"] for each in stoker.json("resource-type", "list")]
    shown = stoker.json("resource-type", "show", "OS::Heat::RandomString")
    assert shown["properties"]["length"]["type"] == "integer"
    assert "resources:" in stoker.run("resource-type", "show", "OS::Heat::RandomString", "--template").stdout
    assert "heat_template_version.2021-04-16" in [each["version"] for each in stoker.json("template", "functions")]
    assert "get_attr" in [each["functions"] for each in stoker.json("template", "functions", "wallaby")]


@pytest.fixture
def command(stoker):
    """The line of a ``stoker`` command that sets a password of the user ann, as a process of its own."""
    stoker.run("user", "create", "ann", "--project", "default", "--password", "horse staple")
    yield [sys.executable, "-m", "stoker_client.cli.main", "user", "password", "ann"]
    stoker.run("user", "delete", "--yes", "ann")


def can_log_in(stoker, password):
    return stoker.login(OS_USERNAME="ann", OS_PASSWORD=password).status == 201


def test_a_password_is_read_from_a_pipe_or_a_file(stoker, command, tmp_path):
    new, newer = "pass word of a pipe", "password of a file"
    (tmp_path / "password").write_text(f"{newer}\n")
    options = {"env": stoker.environment, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run(command, input=f"{new}\n", **options)
    assert (done.returncode, done.stderr) == (0, "")
    assert can_log_in(stoker, new)
    done = subprocess.run([*command, "--password-file", str(tmp_path / "password")], input="", **options)
    assert (done.returncode, done.stderr) == (0, "")
    assert can_log_in(stoker, newer)
    done = subprocess.run(command, input="", **options)
    assert (done.returncode, done.stderr.splitlines()) == (
        2,
        ["stoker: the password is empty: write it to standard input, or use --password-file"],
    )
    done = stoker.run(*command[3:], "--password", "x", "--password-file", "y", check=False)
    assert (done.returncode, "exclude each other" in done.stderr) == (2, True)


def test_a_password_is_read_twice_from_a_terminal(stoker, command):
    master, slave = os.openpty()
    with subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=stoker.environment, start_new_session=True
    ) as process:
        os.close(slave)
        screen = b""
        for prompt in (b"Password: ", b"Repeat for confirmation: "):
            while prompt not in screen:
                screen += os.read(master, 4096)
            os.write(master, b"password of a terminal\n")
        assert process.wait(60) == 0
    screen += os.read(master, 4096)
    os.close(master)
    assert b"Warning" not in screen
    assert b"password of a" not in screen
    assert can_log_in(stoker, "password of a terminal")


def test_projects_users_and_credentials_are_managed(stoker):
    stoker.run("project", "create", "team", "--description", "of a test")
    stoker.run("user", "create", "ann", "--project", "team", "--password", "horse staple")
    assert stoker.json("user", "roles", "ann") == [{"project": "team", "system": None, "role": "member"}]
    login = {"OS_USERNAME": "ann", "OS_PASSWORD": "horse staple", "OS_PROJECT_NAME": "team"}
    assert stoker.login(**login).status == 201
    stoker.run("user", "grant", "ann", "--project", "team", "--role", "reader")
    stoker.run("user", "revoke", "ann", "--project", "team", "--role", "member")
    assert stoker.json("user", "roles", "ann") == [{"project": "team", "system": None, "role": "reader"}]
    stoker.run("user", "password", "ann", "--password", "another horse staple")
    assert stoker.login(**login).status == 401
    made = stoker.json("credential", "create", "program", "--role", "reader")
    assert made["secret"]
    assert [each["name"] for each in stoker.json("credential", "list")] == ["program"]
    stoker.run("credential", "delete", "--yes", "program")
    done = stoker.run("user", "delete", "--yes", "nobody", check=False)
    assert (done.returncode, done.stderr.strip()) == (
        4,
        "stoker: there is no user 'nobody'; `stoker user list` lists them",
    )
    stoker.run("user", "delete", "--yes", "ann")
    stoker.run("project", "delete", "--yes", "team")
    assert [each["name"] for each in stoker.json("project", "list")] == ["default"]
