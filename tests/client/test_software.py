"""Configs, deployments and servers on the command line."""

import json
import re
from itertools import count

import pytest

from stoker_client.collection import iterate_pages
from stoker_client.servers import Servers

pytestmark = pytest.mark.slow


@pytest.fixture
def script(nowhere):
    (nowhere / "go.sh").write_text("#!/bin/sh\necho go\n")
    return "go.sh"


def config_of(stoker, name: str = "setup", *more: str):
    return stoker("config", "create", name, "-f", "go.sh", *more, "-o", "json").data


def configs(site):
    return [config["id"] for config in site.api("GET", "/software_configs?derived=false")["software_configs"]]


def test_config_create(site, stoker, script, nowhere):
    (nowhere / "def.yaml").write_text("inputs: [{name: a, default: 2031-01-01}]\noutputs: {}\noptions: {x: 1}\n")

    config = config_of(stoker, "setup", "--definition", "def.yaml", "-i", "b", "-i", "c:number", "--output-name", "o")

    assert {key: config[key] for key in ("name", "group", "config", "inputs", "outputs", "options")} == {
        "name": "setup",
        "group": "script",
        "config": "#!/bin/sh\necho go\n",
        "inputs": [
            {"name": "a", "default": "2031-01-01", "type": "String"},
            {"name": "b", "type": "String"},
            {"name": "c", "type": "Number"},
        ],
        "outputs": [{"name": "o", "type": "String", "error_output": False}],
        "options": {"x": 1},
    }


def test_configs_are_found_by_id_and_by_name_and_deleted(site, stoker, script):
    config = config_of(stoker)

    assert stoker("config", "show", config["id"], "-o", "json").data == config
    assert stoker("config", "show", "setup", "-o", "json").data == config
    assert stoker("config", "show", "setup", "--config-only").out == "#!/bin/sh\necho go\n\n"
    assert "echo go" in stoker("config", "show", "setup").out
    assert "setup" in stoker("config", "list").out

    other = config_of(stoker)["id"]
    error = stoker("config", "show", "setup").err
    ids = re.fullmatch(r"stoker: 2 configs are named 'setup': (\S+) \(20.*Z\), (\S+) \(20.*Z\); give one of.*\n", error)
    assert {*ids.groups()} == {config["id"], other}

    assert stoker("config", "delete", "--yes", other).code == 0
    assert stoker("config", "delete", "--yes", "setup").code == 0
    assert configs(site) == []
    assert "there is no config 'setup'; `stoker config list`" in stoker("config", "delete", "--yes", "setup").err


def test_derived_configs_are_not_found_by_name(site, stoker, script):
    config = config_of(stoker)
    site.add_agent("web1")
    for _ in range(2):
        assert stoker("deployment", "create", "--config", "setup", "--server", "web1").code == 0
    listed = stoker("config", "list", "-o", "json").data
    assert [each["id"] for each in listed] == [config["id"]]
    assert len(stoker("config", "list", "--all", "-o", "json").data) == 3


@pytest.fixture
def agent(site, stoker, script):
    """The agent of a server ``web1``, beside a config."""
    config_of(stoker, "setup", "-i", "a", "--output-name", "a", "--output-name", "b")
    return site.add_agent("web1")


CREATE = ("deployment", "create", "--config", "setup", "-i", "a=1")


@pytest.fixture
def deployed(agent, stoker):
    """A deployment on the server."""
    return stoker(*CREATE, "--server", "web1", "-o", "json").data


def test_deployment_create_waits_and_fails_with_the_last_line_of_stderr(site, stoker, agent):
    codes = [0, 3]
    site.act(agent, lambda agent, run: agent.finish(run["id"], codes.pop(0), deploy_stderr="no space left\n"))

    assert stoker(*CREATE, "--server", "web1", "--wait", "-o", "json").data["status"] == "COMPLETE"
    failed = stoker(*CREATE, "--server", "web1", "--wait")
    assert (failed.code, failed.err) == (1, "stoker: setup on web1: exit 3: no space left\n")
    assert "`stoker server list`" in stoker(*CREATE, "--server", "nope").err
    assert stoker(*CREATE, "--server", "0" * 32).code == 0, "an id is that of a machine that is not listed"


def test_deployment_list_and_show(site, stoker, deployed):
    other = site.add_agent("web2")
    assert deployed["id"] in stoker("deployment", "list").out
    listed = stoker("deployment", "list", "-o", "json", "-c", "name", "-c", "server", "-c", "requested_by").data
    assert listed == [{"name": "setup", "server": "web1", "requested_by": site.account.name}]
    for option, value, is_listed in (
        ("server", "web1", True),
        ("server", other.id, False),
        ("config", "setup", True),
        ("config", "absent", False),
        ("status", "in_progress", True),
        ("status", "COMPLETE", False),
        ("contains", "ETU", True),
        ("contains", "absent", False),
    ):
        listed = stoker("deployment", "list", f"--{option}", value, "-o", "json", "-c", "id").data
        assert listed == [{"id": deployed["id"]}] * is_listed, (option, value)
    assert "IN_PROGRESS" in stoker("deployment", "show", deployed["id"]).out
    assert stoker("deployment", "show", "setup", "-o", "json").data["id"] == deployed["id"]


def test_deployment_delete_deletes_the_derived_config_and_leaves_a_source_alone(site, stoker, deployed):
    [config] = configs(site)
    assert stoker("deployment", "delete", "--yes", deployed["id"]).code == 0
    assert site.api("GET", "/software_deployments")["software_deployments"] == []
    assert stoker("config", "list", "--all", "-o", "json", "-c", "id").data == [{"id": config}]

    deployed = stoker(*CREATE, "--server", "web1", "-o", "json").data
    path = f"/software_deployments/{deployed['id']}"
    site.change("GET", path, lambda body: {"software_deployment": {**body["software_deployment"], "config_id": config}})
    stoker("deployment", "delete", "--yes", deployed["id"])
    assert config in configs(site)


def test_the_logs_and_outputs_of_a_deployment(stoker, agent, deployed):
    id_, [run] = deployed["id"], agent.entries()
    for stream, offset, data in (("stdout", 0, b"one\n"), ("stderr", 0, b"oops\n"), ("stdout", 4, b"two\n")):
        assert agent.log(run["id"], offset, data, stream).status == 200
    agent.finish(run["id"], a="x", b=[1], deploy_stdout="one\ntwo\n")

    def logs(*words):
        result = stoker("deployment", "logs", id_, *words)
        return result.out, result.err

    for follow in ((), ("--follow",)):
        assert logs(*follow) == ("one\ntwo\n", "oops\n")
        assert logs("--stream", "stderr", *follow) == ("", "oops\n")
    assert logs("--stream", "stdout", "--bytes") == ("one\ntwo\n", "")
    assert logs("--stream", "stderr", "--bytes", "--run", "1") == ("oops\n", "")
    at_once = json.loads(logs("-o", "json")[0])
    assert at_once == [json.loads(line) for line in logs("-f", "-o", "json")[0].splitlines()]
    assert [chunk["data"] for chunk in at_once] == ["one\n", "oops\n", "two\n"]

    assert stoker("deployment", "output", id_, "a").out == "x\n"
    assert stoker("deployment", "output", id_, "b").out == "[1]\n"
    assert stoker("deployment", "output", id_, "-o", "json").data == {"a": "x", "b": [1]}
    assert stoker("deployment", "output", id_, "--all", "-o", "json").data["deploy_stdout"] == "one\ntwo\n"
    rows = [line.split() for line in stoker("deployment", "output", id_).out.splitlines()[1:]]
    assert rows == [["a", "x"], ["b", "[1]"]]
    missing = stoker("deployment", "output", id_, "nope").err
    assert missing.endswith("it has: a, b, deploy_status_code, deploy_stderr, deploy_stdout\n")


def test_logs_are_those_of_the_newest_run_or_of_all(site, stoker, agent):
    numbers = count(1)

    def act(agent, run):
        assert agent.call("POST", f"/runs/{run['id']}/progress", {"state": "RUNNING"}).status < 300
        agent.log(run["id"], 0, f"first line\nthis is run {next(numbers)}\n".encode())
        agent.finish(run["id"], 3)

    site.act(agent, act)
    for words in ((*CREATE[1:], "--server", "web1"), ("retry", "setup")):
        assert stoker("deployment", *words, "--wait").code == 1

    def logs(*words):
        return stoker("deployment", "logs", "setup", *words).out

    assert logs() == logs("--since", "1d") == "first line\nthis is run 2\n"
    assert logs("--run", "1", "--follow") == "first line\nthis is run 1\n"
    assert [line.partition(", 2")[0] for line in logs("--all").splitlines()] == [
        "==> run 1: CREATE, FAILED, exit 3", "first line", "this is run 1",
        "==> run 2: CREATE, FAILED, exit 3", "first line", "this is run 2",
    ]  # fmt: skip
    for follow in ([], ["--follow"]):
        tail = logs("--stream", "stdout", "--tail", "1", "--timestamps", *follow)
        assert re.fullmatch(r"20\d\d-\S+Z this is run 2\n", tail), tail
    assert logs("--since", "2131-01-01T00:00:00Z") == ""
    unknown = stoker("deployment", "logs", "setup", "--run", "3")
    assert (unknown.code, unknown.err) == (4, "stoker: deployment setup has no run 3; it has: 2, 1\n")


def test_servers_are_read_in_pages(site, stoker, client, monkeypatch):
    monkeypatch.setattr(Servers, "page_size", 2)
    for name in "db":
        site.add_agent(name)
    for name in "cae":
        site.api("POST", "/servers", {"name": name})

    def listed(*flags: str) -> tuple[list[str], int]:
        """The names, and the number of requests for servers."""
        before = len(site.calls)
        names = stoker("server", "list", "-o", "name", *flags).out.split()
        return names, sum(path.startswith("/servers") for _, path in site.calls[before:])

    assert listed() == (["a", "b", "c", "d", "e"], 3)
    assert listed("--status", "enrolling") == (["a", "c", "e"], 2)
    by_service = [server["name"] for server in site.api("GET", "/servers")["servers"]]
    assert listed("--limit", "2") == (by_service[:2], 1)
    assert listed("--limit", "1", "--status", "ENROLLING")[0] == [name for name in by_service if name in "cae"][:1]
    assert listed("--limit", "2", "--sort", "name:desc") == (["e", "d"], 3)

    read = iterate_pages(client.wire, "/servers", "servers", {}, 2)
    assert [next(read)["name"], next(read)["name"]] == by_service[:2]
    site.api("DELETE", f"/servers/{by_service[1]}")  # the marker of the next page
    assert [server["name"] for server in read] == by_service[2:]
