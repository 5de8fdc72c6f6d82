"""Configs, deployments and servers on the command line."""

import json
import re

import pytest

from stoker_client import servers

pytestmark = pytest.mark.slow


@pytest.fixture
def script(nowhere):
    (nowhere / "go.sh").write_text("#!/bin/sh\necho go\n")
    return "go.sh"


def made(result):
    assert result.code == 0, result.err
    return json.loads(result.out)


def config_of(stoker, name: str = "setup", *more: str):
    return made(stoker("config", "create", name, "-f", "go.sh", *more, "-o", "json"))


def test_config_create(site, stoker, script, nowhere):
    (nowhere / "def.yaml").write_text("inputs: [{name: a, default: 2031-01-01}]\noutputs: {}\noptions: {x: 1}\n")

    config = config_of(
        stoker, "setup", "--definition", "def.yaml", "-i", "b", "-i", "c:number", "--output-name", "o"
    )  # fmt: skip

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


def test_config_show_by_id_and_by_name(site, stoker, script):
    config = config_of(stoker)

    assert made(stoker("config", "show", config["id"], "-o", "json")) == config
    assert made(stoker("config", "show", "setup", "-o", "json")) == config
    assert stoker("config", "show", "setup", "--config-only").out == "#!/bin/sh\necho go\n\n"
    assert "echo go" in stoker("config", "show", "setup").out


def test_derived_configs_are_not_found_by_name(site, stoker, script):
    config = config_of(stoker)
    site.add_agent("web1")
    for _ in range(2):
        assert stoker("deployment", "create", "--config", "setup", "--server", "web1").code == 0
    listed = json.loads(stoker("config", "list", "-o", "json").out)
    assert [each["id"] for each in listed] == [config["id"]]
    assert len(json.loads(stoker("config", "list", "--all", "-o", "json").out)) == 3


def test_config_names_may_be_ambiguous(site, stoker, script):
    first, second = config_of(stoker)["id"], config_of(stoker)["id"]

    error = stoker("config", "show", "setup").err
    ids = re.fullmatch(r"stoker: 2 configs are named 'setup': (\S+) \(20.*Z\), (\S+) \(20.*Z\); give one of.*\n", error)
    assert {*ids.groups()} == {first, second}


def test_config_list_and_delete(site, stoker, script):
    config_of(stoker)

    assert "setup" in stoker("config", "list").out
    assert stoker("config", "delete", "--yes", "setup").code == 0
    assert configs(site) == []
    assert "there is no config 'setup'; `stoker config list`" in stoker("config", "delete", "--yes", "setup").err


def configs(site):
    return [config["id"] for config in site.api("GET", "/software_configs?derived=false")["software_configs"]]


@pytest.fixture
def agent(site, stoker, script):
    """The agent of a server ``web1``, beside a config."""
    config_of(stoker, "setup", "-i", "a", "--output-name", "a", "--output-name", "b")
    return site.add_agent("web1")


@pytest.fixture
def deployed(agent, stoker):
    """A deployment on the server."""
    return made(stoker("deployment", "create", "--config", "setup", "--server", "web1", "-i", "a=1", "-o", "json"))


def test_deployment_create_waits(site, stoker, agent):
    site.act(agent)

    words = ("deployment", "create", "--config", "setup", "--server", "web1", "-i", "a=1", "--wait")

    assert made(stoker(*words, "-o", "json"))["status"] == "COMPLETE"


def test_deployment_create_waits_and_fails_with_the_last_line_of_stderr(site, stoker, agent):
    site.act(agent, lambda agent, run: agent.finish(run["id"], 3, deploy_stderr="no space left\n"))

    result = stoker("deployment", "create", "--config", "setup", "--server", "web1", "-i", "a=1", "--wait")

    assert result.code == 1
    assert result.err == "stoker: setup on web1: exit 3: no space left\n"


def test_deployment_for_an_unknown_server(site, stoker, script):
    config_of(stoker)

    result = stoker("deployment", "create", "--config", "setup", "--server", "nope")
    unlisted = stoker("deployment", "create", "--config", "setup", "--server", "0" * 32)

    assert "`stoker server list`" in result.err
    assert unlisted.code == 0


def test_a_deployment_list_names_config_server_and_requester(site, stoker, deployed):
    listed = made(stoker("deployment", "list", "-o", "json", "-c", "name", "-c", "server", "-c", "requested_by"))

    assert listed == [{"name": "setup", "server": "web1", "requested_by": site.account.name}]


def test_deployment_show_by_the_name_of_its_config(stoker, deployed):
    assert made(stoker("deployment", "show", "setup", "-o", "json"))["id"] == deployed["id"]


def test_deployment_list_and_show(site, stoker, deployed):
    other = site.add_agent("web2")
    assert deployed["id"] in stoker("deployment", "list").out
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
        listed = made(stoker("deployment", "list", f"--{option}", value, "-o", "json", "-c", "id"))
        assert listed == [{"id": deployed["id"]}] * is_listed, (option, value)
    assert "IN_PROGRESS" in stoker("deployment", "show", deployed["id"]).out


def test_deployment_delete_deletes_the_derived_config(site, stoker, deployed):
    [config] = configs(site)
    assert stoker("deployment", "delete", "--yes", deployed["id"]).code == 0

    assert site.api("GET", "/software_deployments")["software_deployments"] == []
    assert made(stoker("config", "list", "--all", "-o", "json", "-c", "id")) == [{"id": config}]


def test_deployment_delete_leaves_a_source_config_alone(site, stoker, deployed):
    [config] = configs(site)
    path = f"/software_deployments/{deployed['id']}"
    site.change("GET", path, lambda body: {"software_deployment": {**body["software_deployment"], "config_id": config}})

    stoker("deployment", "delete", "--yes", deployed["id"])

    assert config in configs(site)


@pytest.fixture
def written(agent, deployed):
    """The id of the deployment after a run that wrote to both streams."""
    [run] = agent.entries()
    for stream, offset, data in (("stdout", 0, b"one\n"), ("stderr", 0, b"oops\n"), ("stdout", 4, b"two\n")):
        assert agent.log(run["id"], offset, data, stream).status == 200
    agent.finish(run["id"], a="x", b=[1], deploy_stdout="one\ntwo\n")
    return deployed["id"]


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_deployment_logs(stoker, written, follow):
    both = stoker("deployment", "logs", written, *follow)
    only = stoker("deployment", "logs", written, "--stream", "stderr", *follow)

    assert (both.out, both.err) == ("one\ntwo\n", "oops\n")
    assert (only.out, only.err) == ("", "oops\n")


def test_deployment_logs_as_bytes(stoker, written):
    assert stoker("deployment", "logs", written, "--stream", "stdout", "--bytes").out == "one\ntwo\n"
    assert stoker("deployment", "logs", written, "--stream", "stderr", "--bytes", "--run", "1").out == "oops\n"


def test_deployment_logs_as_data(stoker, written):
    at_once = made(stoker("deployment", "logs", written, "-o", "json"))
    followed = [json.loads(line) for line in stoker("deployment", "logs", written, "-f", "-o", "json").out.splitlines()]

    assert at_once == followed
    assert [chunk["data"] for chunk in at_once] == ["one\n", "oops\n", "two\n"]


def test_deployment_output(stoker, written):
    id_ = written

    assert stoker("deployment", "output", id_, "a").out == "x\n"
    assert stoker("deployment", "output", id_, "b").out == "[1]\n"
    assert made(stoker("deployment", "output", id_, "-o", "json")) == {"a": "x", "b": [1]}
    assert made(stoker("deployment", "output", id_, "--all", "-o", "json"))["deploy_stdout"] == "one\ntwo\n"
    assert [line.split() for line in stoker("deployment", "output", id_).out.splitlines()[1:]] == [
        ["a", "x"],
        ["b", "[1]"],
    ]
    assert stoker("deployment", "output", id_, "nope").err.endswith(
        "it has: a, b, deploy_status_code, deploy_stderr, deploy_stdout\n"
    )


def test_servers_are_read_in_pages(site, stoker, client, monkeypatch):
    monkeypatch.setattr(servers, "_PAGE", 2)
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

    read = client.servers.iterate()
    assert [next(read)["name"], next(read)["name"]] == by_service[:2]
    site.api("DELETE", f"/servers/{by_service[1]}")  # the marker of the next page
    assert [server["name"] for server in read] == by_service[2:]


def test_server_list_show_delete(site, stoker):
    agent = site.add_agent("web1")

    assert "ONLINE" in stoker("server", "list").out
    assert made(stoker("server", "show", "web1", "-o", "json"))["id"] == agent.id
    assert agent.id in stoker("server", "show", agent.id).out
    assert stoker("server", "delete", "--yes", "web1").code == 0
    assert site.api("GET", "/servers")["servers"] == []
