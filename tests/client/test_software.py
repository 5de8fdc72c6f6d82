"""Configs, deployments and servers on the command line."""

import json
import signal
import time

import pytest

from client.little_heat import TIME, Script
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


def test_config_create(heat, stoker, script, nowhere):
    (nowhere / "def.yaml").write_text("inputs: [{name: a, default: 2031-01-01}]\noptions: {x: 1}\n")

    config = config_of(
        stoker, "setup", "--definition", "def.yaml", "-i", "b", "-i", "c:number", "--output-name", "o"
    )  # fmt: skip

    assert {key: config[key] for key in ("name", "group", "config", "inputs", "outputs", "options")} == {
        "name": "setup",
        "group": "script",
        "config": "#!/bin/sh\necho go\n",
        "inputs": [{"name": "a", "default": "2031-01-01"}, {"name": "b"}, {"name": "c", "type": "Number"}],
        "outputs": [{"name": "o"}],
        "options": {"x": 1},
    }


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [("[]", "has the sections"), ("config: x", "has the sections"), ("inputs: {}", None), ("inputs: {a: 1}", "list")],
)
def test_config_definitions_are_checked(heat, stoker, script, nowhere, definition, complaint):
    (nowhere / "def.yaml").write_text(definition)

    result = stoker("config", "create", "x", "-f", script, "--definition", "def.yaml")

    assert result.code == (2 if complaint else 0)
    assert (complaint or "") in result.err


def test_config_input_types_are_checked(heat, stoker, script):
    assert stoker("config", "create", "x", "-f", script, "-i", "a:nonsense").code == 2
    assert heat.calls == []


def test_config_must_be_text(heat, stoker, nowhere):
    (nowhere / "blob").write_bytes(b"a\xff")

    result = stoker("config", "create", "x", "-f", "blob")

    assert result.err == "stoker: blob (named by --file) is not UTF-8 text: byte 1 is none\n"


def test_config_show_by_id_and_by_name(heat, stoker, script):
    config = config_of(stoker)

    assert made(stoker("config", "show", config["id"], "-o", "json")) == config
    assert made(stoker("config", "show", "setup", "-o", "json")) == config
    assert stoker("config", "show", "setup", "--config-only").out == "#!/bin/sh\necho go\n\n"
    assert "echo go" in stoker("config", "show", "setup").out


def test_derived_configs_are_not_found_by_name(heat, stoker, script):
    config = config_of(stoker)
    heat.add_server("web1")
    for _ in range(2):
        assert stoker("deployment", "create", "--config", "setup", "--server", "web1").code == 0
    listed = json.loads(stoker("config", "list", "-o", "json").out)
    assert [each["id"] for each in listed] == [config["id"]]
    assert len(json.loads(stoker("config", "list", "--all", "-o", "json").out)) == 3


def test_config_names_may_be_ambiguous(heat, stoker, script):
    first, second = config_of(stoker)["id"], config_of(stoker)["id"]

    assert stoker("config", "show", "setup").err == (
        f"stoker: 2 configs are named 'setup': {first} ({TIME}), {second} ({TIME}); give one of the ids\n"
    )


def test_config_list_and_delete(heat, stoker, script):
    config_of(stoker)

    assert "setup" in stoker("config", "list").out
    assert stoker("config", "delete", "--yes", "setup").code == 0
    assert heat.configs == {}
    assert "there is no config 'setup'; `stoker config list`" in stoker("config", "delete", "--yes", "setup").err


@pytest.fixture
def deployed(heat, stoker, script):
    """A deployment on the server ``web1``."""
    server, config = heat.add_server("web1"), config_of(stoker)
    result = stoker("deployment", "create", "--config", "setup", "--server", "web1", "-i", "a=1", "-o", "json")
    return {"server": server, "config": config, **made(result)}


def test_deployment_create_sends_the_options(heat, stoker, deployed):
    *_, (_, _, body) = heat.bodies

    assert body == {
        "config_id": deployed["config"]["id"],
        "server_id": deployed["server"]["id"],
        "input_values": {"a": "1"},
        "action": "CREATE",
        "signal_transport": "STOKER_SIGNAL",
    }


def test_deployment_create_waits(heat, stoker, script):
    heat.add_server("web1")
    config_of(stoker)
    heat.script = Script([[("stdout", "x")]], outputs={"o": 1})

    result = stoker("deployment", "create", "--config", "setup", "--server", "web1", "--wait", "-o", "json")

    assert made(result)["status"] == "COMPLETE"


def test_deployment_create_waits_and_fails_with_the_last_line_of_stderr(heat, stoker, script):
    heat.add_server("web1")
    config_of(stoker)
    heat.script = Script(status="FAILED", reason="exit 3", outputs={"deploy_stderr": "no space left\n"})

    result = stoker("deployment", "create", "--config", "setup", "--server", "web1", "--wait")

    assert result.code == 1
    assert result.err == "stoker: setup on web1: exit 3: no space left\n"


def test_ctrl_c_during_the_cancellation_of_a_deployment_says_that_it_continues(heat, stoker, deployed, spawn):
    heat.deployments[deployed["id"]]["log"] = []  # it does not end
    process = spawn("-m", "stoker_client.cli.main", "deployment", "cancel", deployed["id"], "--wait")
    while not any("/logs" in path for _, path in heat.calls):
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)

    _, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert f"no longer waiting; deployment {deployed['id']} is cancelled" in err
    assert f"`stoker deployment cancel --force {deployed['id']}`" in err


def test_deployment_for_an_unknown_server(heat, stoker, script):
    config_of(stoker)

    result = stoker("deployment", "create", "--config", "setup", "--server", "nope")
    unlisted = stoker("deployment", "create", "--config", "setup", "--server", "0" * 32)

    assert "`stoker server list`" in result.err
    assert unlisted.code == 0


def test_a_deployment_list_names_config_server_and_requester(heat, stoker, deployed):
    listed = made(stoker("deployment", "list", "-o", "json", "-c", "name", "-c", "server", "-c", "requested_by"))

    assert listed == [{"name": "setup", "server": "web1", "requested_by": "demo"}]


@pytest.mark.parametrize("knows_names", [True, False])
def test_deployment_show_by_the_name_of_its_config(heat, stoker, deployed, knows_names):
    heat.knows_names = knows_names

    assert made(stoker("deployment", "show", "setup", "-o", "json"))["id"] == deployed["id"]


def test_a_deployment_list_of_heat_shows_ids(heat, stoker, deployed):
    heat.knows_names = False

    [listed] = made(stoker("deployment", "list", "-o", "json", "-c", "name", "-c", "server"))

    assert listed == {"name": deployed["id"], "server": deployed["server_id"]}


def test_deployment_list_and_show(heat, stoker, deployed):
    other = heat.add_server("web2")

    assert deployed["id"] in stoker("deployment", "list").out
    assert made(stoker("deployment", "list", "--server", "web1", "-o", "json"))[0]["id"] == deployed["id"]
    assert made(stoker("deployment", "list", "--server", other["id"], "-o", "json")) == []
    assert "IN_PROGRESS" in stoker("deployment", "show", deployed["id"]).out


def test_deployment_delete_deletes_the_derived_config(heat, stoker, deployed):
    assert stoker("deployment", "delete", "--yes", deployed["id"]).code == 0

    assert heat.deployments == {}
    assert list(heat.configs) == [deployed["config"]["id"]]


def test_deployment_delete_leaves_a_source_config_alone(heat, stoker, deployed):
    heat.deployments[deployed["id"]]["config_id"] = deployed["config"]["id"]

    stoker("deployment", "delete", "--yes", deployed["id"])

    assert deployed["config"]["id"] in heat.configs


PAGES = [[("stdout", "one\n"), ("stderr", "oops\n")], [("stdout", "two\n")]]


@pytest.mark.parametrize("follow", [[], ["--follow"]])
def test_deployment_logs(heat, stoker, deployed, follow):
    heat.script = Script(PAGES)

    both = stoker("deployment", "logs", deployed["id"], *follow)
    heat.script = Script(PAGES)
    only = stoker("deployment", "logs", deployed["id"], "--stream", "stderr", *follow)

    assert (both.out, both.err) == ("one\ntwo\n", "oops\n")
    assert (only.out, only.err) == ("", "oops\n")


def test_deployment_logs_as_data(heat, stoker, deployed):
    heat.script = Script(PAGES)

    at_once = made(stoker("deployment", "logs", deployed["id"], "-o", "json"))
    followed = [
        json.loads(line) for line in stoker("deployment", "logs", deployed["id"], "-f", "-o", "json").out.splitlines()
    ]

    assert at_once == followed
    assert [chunk["data"] for chunk in at_once] == ["one\n", "oops\n", "two\n"]


def test_deployment_output(heat, stoker, deployed):
    id_ = deployed["id"]
    heat.deployments[id_]["output_values"] = {"a": "x", "b": [1], "deploy_stdout": "out"}

    assert stoker("deployment", "output", id_, "a").out == "x\n"
    assert stoker("deployment", "output", id_, "b").out == "[1]\n"
    assert made(stoker("deployment", "output", id_, "-o", "json")) == {"a": "x", "b": [1]}
    assert made(stoker("deployment", "output", id_, "--all", "-o", "json"))["deploy_stdout"] == "out"
    assert [line.split() for line in stoker("deployment", "output", id_).out.splitlines()[1:]] == [
        ["a", "x"],
        ["b", "[1]"],
    ]
    assert stoker("deployment", "output", id_, "nope").err.endswith("it has: a, b, deploy_stdout\n")


def test_enroll_prints_the_command_alone(heat, stoker):
    result = stoker("server", "enroll", "web1")

    assert result.out == "echo secret | python3 -c 'install'\n"
    assert result.err.splitlines() == [
        f"Paste this line on web1. It is good for one machine, until {TIME}.",
        "Warning: Nobody can reach it.",
    ]


def test_enroll_prints_single_fields(heat, stoker):
    shown = made(stoker("server", "enroll", "web1", "-o", "json", "-c", "token", "-c", "expires_at"))
    assert list(shown) == ["token", "expires_at"]
    assert stoker("server", "enroll", "web2", "-o", "value", "-c", "token").out == "secret\n"


def test_enroll_as_json_has_all_fields(heat, stoker):
    enrolled = made(stoker("server", "enroll", "web1", "-o", "json"))

    assert enrolled["server"]["name"] == "web1"
    assert enrolled["enrollment"]["token"] == "secret"


def test_enrolling_a_used_name_is_an_error(heat, stoker):
    heat.add_server("web1")

    assert stoker("server", "enroll", "web1").err == "stoker: A server named web1 exists.\n"


def test_servers_are_read_in_pages(heat, stoker, client, monkeypatch):
    monkeypatch.setattr(servers, "_PAGE", 2)
    states = {"d": "ONLINE", "c": "OFFLINE", "b": "ONLINE", "a": "OFFLINE", "e": "OFFLINE"}
    ids = {name: heat.add_server(name, status)["id"] for name, status in states.items()}

    def listed(*flags: str) -> tuple[list[str], int]:
        """The names, and the number of requests for servers."""
        before = len(heat.calls)
        names = stoker("server", "list", "-o", "name", *flags).out.split()
        return names, sum(path.startswith("/servers") for _, path in heat.calls[before:])

    assert listed() == (["a", "b", "c", "d", "e"], 3)
    assert listed("--status", "offline") == (["a", "c", "e"], 3)
    assert listed("--limit", "2") == (["d", "c"], 1)
    assert listed("--limit", "1", "--status", "OFFLINE") == (["c"], 1)
    assert listed("--limit", "2", "--sort", "name:desc") == (["e", "d"], 3)
    assert heat.calls[-1] == ("GET", f"/servers?limit=2&marker={ids['a']}")

    read = client.servers.iterate()
    assert [next(read)["name"], next(read)["name"]] == ["d", "c"]
    del heat.servers[ids["c"]]  # the marker of the next page
    assert [server["name"] for server in read] == ["b", "a", "e"]


def test_server_list_show_delete(heat, stoker):
    server = heat.add_server("web1")

    assert "ONLINE" in stoker("server", "list").out
    assert made(stoker("server", "show", "web1", "-o", "json")) == server
    assert server["id"] in stoker("server", "show", server["id"]).out
    assert stoker("server", "delete", "--yes", "web1").code == 0
    assert heat.servers == {}
