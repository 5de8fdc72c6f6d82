"""The `stoker` command as people use it, against a real Stoker and a real agent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import requests

from stoker_client.cli.main import main
from support.agents import OwnAgent, enrolled_agent
from support.server import Served, served

TEMPLATE = """\
heat_template_version: 2018-08-31
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: "echo from the stack"}
  install:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: SERVER}
"""


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def data(self):
        assert self.code == 0, self.err
        return json.loads(self.out)


@dataclass
class World:
    served: Served
    agent: OwnAgent
    server_id: str


Stoker = Callable[..., Result]


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    """A Stoker, and the server ``web1`` with an agent."""
    folder = tmp_path_factory.mktemp("command-line")
    with served(folder) as running, enrolled_agent(folder / "agent", running, "web1") as agent:
        running.until(lambda: running.heat("GET", "/servers/web1").body["server"]["status"] == "ONLINE")
        yield World(running, agent, agent.spoken.id)


@pytest.fixture
def stoker(world, monkeypatch, tmp_path, capsys) -> Stoker:
    """Calls the program in this process, as the administrator."""
    for name, value in world.served.environment.items():
        if name.startswith("OS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        capsys.readouterr()
        code = main(words)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def config(stoker, tmp_path, request) -> dict[str, str]:
    """A config named as the test, that prints where it runs."""
    tmp_path.joinpath("go.sh").write_text("#!/bin/sh\necho to stdout\necho to stderr >&2\n")
    return stoker("config", "create", request.node.name, "-f", "go.sh", "-o", "json").data


@pytest.fixture
def stack(stoker, world, tmp_path) -> str:
    tmp_path.joinpath("t.yaml").write_text(TEMPLATE.replace("SERVER", world.server_id))
    assert stoker("stack", "create", "web", "-t", "t.yaml", "--wait").code == 0
    yield "web"
    assert stoker("stack", "delete", "web", "--yes", "--wait").code == 0


def test_names_prefixes_and_stack_resources_replace_ids(stoker, world, config, stack):
    made = stoker("deployment", "create", "--config", config["id"][:8], "--server", world.server_id[:13], "--name",
                  "by hand", "--wait", "-o", "json").data  # fmt: skip
    assert made["server_id"] == world.server_id
    for ref in ("by hand", made["id"], made["id"][:8]):
        assert stoker("deployment", "show", ref, "-o", "json").data["id"] == made["id"]
    assert "from the stack" in stoker("deployment", "logs", "web/install").out
    assert stoker("deployment", "logs", "web/config").err.startswith(
        "stoker: web/config is not a deployment but an OS::"
    )
    stack_id = stoker("stack", "show", "web", "-o", "json").data["id"]
    assert stoker("stack", "resources", stack_id[:8]).code == 0
    taken = stoker("snapshot", "create", "web", "before", "-o", "json").data
    assert stoker("snapshot", "delete", "--yes", stack_id[:8], taken["id"][:8]).code == 0

    begun = stoker("trigger", "create", "--config", config["name"], "--on", world.server_id[:8], "--name", "n", "-f",
                   "-o", "json").data  # fmt: skip
    for ref in ("n", begun["id"][:8]):
        assert stoker("trigger", "show", ref, "-o", "json").data["id"] == begun["id"]
    assert stoker("trigger", "web/install", "-f").code == 0
    begun = stoker("trigger", "web/install", "--on", "w*1", "-f", "-o", "json").data
    assert [target["server_name"] for target in begun["targets"]] == ["web1"]


def test_lists_are_filtered_sorted_limited_and_printed_for_shells(stoker, world, stack, config):
    for name in ("node10", "node2", "Node1"):
        world.served.heat("POST", "/servers", {"name": name})
    names = stoker("server", "list", "-o", "name").out.split()
    assert names == ["Node1", "node2", "node10", "web1"]
    assert stoker("server", "list", "--status", "online", "-o", "name").out == "web1\n"
    assert stoker("server", "list", "--sort", "name:desc", "--limit", "2", "-o", "name").out.split() == [
        "web1",
        "node10",
    ]
    assert stoker("server", "list", "-o", "csv", "-c", "name", "-c", "status", "--limit", "1").out == (
        "name,status\nweb1,ONLINE\n"
    )  # without --sort, a limit is for the oldest
    assert stoker("stack", "list", "--status", "complete", "-o", "name").out == "web\n"
    assert stoker("stack", "list", "--status", "CREATE_FAILED", "-o", "name").out == ""
    assert stoker("stack", "resources", "web", "--status", "create_complete", "-o", "name").out.split() == [
        "config",
        "install",
    ]
    columns = [part for name in ("name", "server", "requested_by") for part in ("-c", name)]
    listed = stoker("deployment", "list", "--status", "complete", "-o", "csv", *columns).out.splitlines()
    assert {"name,server,requested_by", "web/install,web1,the stack"} <= set(listed)
    assert stoker("deployment", "show", "web/install", "-o", "value", "-c", "stack_name").out == "web\n"
    assert "web/install" not in stoker("deployment", "list", "--status", "failed", "-o", "value").out
    assert stoker("trigger", "create", "--config", config["name"], "--on", "web1", "-f").code == 0
    [begun] = stoker("trigger", "list", "-o", "json", "--limit", "1").data
    assert "web1" in stoker("trigger", "show", begun["id"], "--status", "complete").out
    assert "web1" not in stoker("trigger", "show", begun["id"], "--status", "failed").out
    wrong = stoker("server", "list", "-c", "nope")
    assert wrong.code == 2
    assert "there is no column 'nope'; there are id, name, status" in wrong.err


def test_logs_are_those_of_the_newest_run_or_of_all(stoker, world, tmp_path):
    tmp_path.joinpath("count.sh").write_text(
        '#!/bin/sh\necho x >> "$WORK/runs"\necho first line\necho "this is run $(wc -l < "$WORK/runs")"\n'
        "echo oh no >&2\nexit 3\n"
    )
    stoker("config", "create", "counted", "-f", "count.sh")
    failed = stoker("deployment", "create", "--config", "counted", "--server", "web1", "--wait")
    assert failed.code == 1
    assert failed.err == "stoker: counted on web1: exit 3: oh no\n"
    assert stoker("deployment", "retry", "counted", "--wait").code == 1

    assert stoker("deployment", "logs", "counted").out == "first line\nthis is run 2\n"
    assert stoker("deployment", "logs", "counted", "--run", "1", "--follow").out == "first line\nthis is run 1\n"
    both = stoker("deployment", "logs", "counted", "--all").out.splitlines()
    assert [line.partition(", 2")[0] for line in both] == [
        "==> run 1: CREATE, FAILED, exit 3", "first line", "this is run 1",
        "==> run 2: CREATE, FAILED, exit 3", "first line", "this is run 2",
    ]  # fmt: skip
    for follow in ([], ["--follow"]):
        tail = stoker("deployment", "logs", "counted", "--stream", "stdout", "--tail", "1", "--timestamps", *follow).out
        assert re.fullmatch(r"20\d\d-\S+Z this is run 2\n", tail), tail
    assert stoker("deployment", "logs", "counted", "--since", "1d").out == "first line\nthis is run 2\n"
    assert stoker("deployment", "logs", "counted", "--since", "2131-01-01T00:00:00Z").out == ""
    unknown = stoker("deployment", "logs", "counted", "--run", "3")
    assert (unknown.code, unknown.err) == (4, "stoker: deployment counted has no run 3; it has: 2, 1\n")


def test_run_accepts_one_server_several_and_labels(stoker, world):
    assert stoker("server", "label", "web1", "role=web").code == 0
    one = stoker("run", "web1", "--", "echo", "a b")
    assert (one.code, one.out, one.err) == (0, "a b\n", "")
    labeled = stoker("run", "--label", "role=web", "--", "echo out; echo err >&2; exit 4")
    assert (labeled.code, labeled.out, labeled.err) == (4, "out\n", "err\n")

    with enrolled_agent(world.agent.folder.parent / "second", world.served, "web2"):
        world.served.until(lambda: world.served.heat("GET", "/servers/web2").body["server"]["status"] == "ONLINE")
        for servers in (["web1", "web2"], ["web?", world.server_id[:8]]):
            both = stoker("run", *servers, "--", "hostname >&2; echo hello")
            assert sorted(both.out.splitlines()) == ["web1 | hello", "web2 | hello"]
            assert both.code == 0, both.err
        for servers in (["web1"], ["web1", "web2"]):
            refused = stoker("run", *servers, "-i", "bad name=1", "--", "env")
            assert (refused.code, refused.out) == (5, "")
            assert '"bad name" cannot be an environment variable' in refused.err
    assert "run" not in stoker("config", "list", "-o", "value", "-c", "name").out.split()
    assert stoker("deployment", "list", "--server", "web2", "-o", "value").out == ""
    assert stoker("server", "delete", "web2", "--yes").code == 0
    assert stoker("run", "--label", "role=none", "--", "true").err.startswith("stoker: no server matches role=none")


def test_a_run_that_does_not_begin_in_time_is_cancelled(stoker, world):
    world.served.heat("POST", "/servers", {"name": "absent"})
    late = stoker("run", "absent", "--wait-timeout", "1", "--", "true")
    assert late.code == 124
    assert late.err.splitlines() == [
        "stoker: absent is ENROLLING: waiting for its agent, for 1 s at most (--wait-timeout)",
        "stoker: nothing ran on absent within 1 s (ENROLLING); its run is cancelled",
    ]
    several = stoker("run", "absent", "web1", "--wait-timeout", "3", "--", "echo here")
    assert several.out == "web1 | here\n"
    assert several.code == 124
    assert "stoker: nothing ran on absent within 3 s (ENROLLING); its run is cancelled" in several.err
    failing = stoker("run", "absent", "web1", "--wait-timeout", "3", "--", "exit 3")
    assert failing.code == 3
    assert stoker("deployment", "list", "--server", "absent", "-o", "value").out == ""
    assert stoker("server", "delete", "absent", "--yes").code == 0

    world.served.heat(
        "PATCH", "/servers/web1", {"policy": {"maintenance_windows": [{"cron": "0 0 1 1 *", "minutes": 1}]}}
    )
    held = stoker("run", "web1", "--wait-timeout", "1", "--", "true")
    world.served.heat("PATCH", "/servers/web1", {"policy": None})
    assert held.code == 124
    assert held.err.startswith("stoker: not started on web1: Waiting for the maintenance window of web1, which opens ")
    assert held.err.splitlines()[0].endswith("; waiting for 1 s at most (--wait-timeout)")


def test_many_servers_are_labeled_configured_and_deleted_at_once(stoker, world):
    for name in ("bulk1", "bulk2"):
        world.served.heat("POST", "/servers", {"name": name})
    assert (
        stoker("server", "label", "bulk1", "bulk2", "pool=bulk").out == "server bulk1 labeled\nserver bulk2 labeled\n"
    )
    assert stoker("server", "label", "--label", "pool=bulk", "site=north").code == 0
    assert stoker("server", "show", "bulk2", "-o", "json").data["labels"] == {"pool": "bulk", "site": "north"}
    done = stoker("server", "policy", "--label", "pool=bulk", "--max-concurrent", "2")
    assert done.out == "policy of server bulk1 set\npolicy of server bulk2 set\n"
    shown = stoker("server", "policy", "--label", "pool=bulk", "-o", "json").data
    assert [each["policy"]["max_concurrent_runs"] for each in shown] == [2, 2]
    assert stoker("server", "label", "bulk?", "rack=7").out == "server bulk1 labeled\nserver bulk2 labeled\n"
    none = stoker("server", "delete", "bulk[3-9]", "--yes")
    assert (none.code, none.err) == (
        4,
        "stoker: no server's name matches 'bulk[3-9]'; `stoker server list` lists them\n",
    )

    refused = stoker("server", "delete", "--label", "pool=bulk")
    assert (refused.code, "use --yes" in refused.err) == (2, True)
    deleted = stoker("server", "delete", "--label", "pool=bulk", "--yes")
    assert deleted.out == "server bulk1 deleted\nserver bulk2 deleted\n"
    assert stoker("server", "list", "--label", "pool=bulk", "-o", "name").out == ""


def test_status_shows_the_site_and_its_exit_code(stoker, world, config, monkeypatch):
    status = stoker("status", "-o", "json").data
    assert (status["url"], status["health"]) == (world.served.url, "ok")
    assert status["version"]
    assert status["servers"]["ONLINE"] == 1
    assert "triggers_in_progress" in stoker("status").out

    taken = stoker("server", "enroll", "web1")
    assert (taken.code, taken.err.count("\n")) == (5, 1)
    monkeypatch.setenv("OS_AUTH_URL", "http://127.0.0.1:1/identity/v3")
    assert stoker("status").code == 6


@pytest.fixture
def requests_sent(monkeypatch) -> list[str]:
    """What is asked of servers from now on."""
    sent: list[str] = []
    send = requests.Session.send

    def record(self, request, **more):
        sent.append(f"{request.method} {urlsplit(request.url).path}")
        return send(self, request, **more)

    monkeypatch.setattr(requests.Session, "send", record)
    return sent


def test_a_login_is_kept_for_the_next_command(stoker, world, requests_sent, tmp_path, monkeypatch):
    assert stoker("server", "list").code == 0
    assert [each for each in requests_sent if "auth/tokens" in each] == ["POST /identity/v3/auth/tokens"]
    [kept] = (tmp_path / "cache" / "stoker" / "logins").iterdir()
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    requests_sent.clear()
    assert stoker("server", "list").code == 0
    assert stoker("user", "list").code == 0
    assert requests_sent == [f"GET /v1/{world.served.project}/servers", "GET /identity/v3/users"]

    login = json.loads(kept.read_text())
    state = json.loads(login["state"])
    kept.write_text(json.dumps({**login, "state": json.dumps({**state, "auth_token": "revoked"})}))
    requests_sent.clear()
    assert stoker("server", "list").code == 0
    assert requests_sent[-2:] == ["POST /identity/v3/auth/tokens", f"GET /v1/{world.served.project}/servers"]
    kept.write_text("{")
    assert stoker("server", "list").code == 0

    monkeypatch.setenv("OS_PASSWORD", "another")
    assert stoker("server", "list").code == 5
