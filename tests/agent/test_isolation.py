"""Runs as another user and within limits, on a machine without systemd: real processes of a real user."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from agent.conftest import HOLD, Agent
from stoker_agent.commands.build import build

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch to another user"),
    pytest.mark.skipif(Path("/run/systemd/system").is_dir(), reason="this machine has systemd"),
]

USER = pwd.getpwnam("nobody")
SYSTEM_PYTHON = "/usr/bin/python3"


@pytest.fixture
def open_agent(server):
    """An agent in a directory that other users may enter, outside of /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="stoker-test-", dir="/run"))
    folder.chmod(0o755)
    made = Agent(folder, server)
    made.work.chmod(0o777)
    yield made
    made.end_all()
    if made.folder.joinpath("agent.log").exists():
        print(made.log)
    shutil.rmtree(folder)


def run(server, agent, script, outputs=(), **options):
    return agent.run(server.entry("c1", script, outputs=outputs, options=options, secret="s3cret"))


def test_a_run_executes_as_its_user_with_the_users_groups_home_and_variables(server, open_agent):
    script = (
        "#!/bin/sh\nid -un; id -g; id -G; echo $USER $LOGNAME $HOME; pwd\n"
        "printf output >$heat_outputs_path.answer; echo '50 half' >>$STOKER_PROGRESS\n"
        "echo to stdout >>/dev/stdout; echo to stderr >>/dev/stderr; cat /dev/stdin; (id -un) \n"
        "touch file\n"
    )
    result = run(server, open_agent, script, ["answer"], user="nobody")
    assert result["deploy_status_code"] == 0, result
    groups = " ".join(str(group) for group in os.getgrouplist("nobody", USER.pw_gid))
    assert result["deploy_stdout"].splitlines() == [
        "nobody",
        str(USER.pw_gid),
        groups,
        f"nobody nobody {USER.pw_dir}",
        str(open_agent.run_folder("c1") / "cwd"),
        "to stdout",
        "nobody",
    ]
    assert result["deploy_stderr"] == "to stderr\n"
    assert result["answer"] == "output"
    folder = open_agent.run_folder("c1")
    assert folder.joinpath("progress").read_text() == "50 half\n"
    assert not folder.joinpath("cwd").exists()
    assert [folder.joinpath(name).stat().st_mode & 0o077 for name in ("stdout", "stderr", "progress")] == [0, 0, 0]


def test_the_user_of_a_run_reads_nothing_of_other_runs_and_changes_nothing_of_the_agent(server, open_agent):
    server.give(server.entry("other", "sleep 1000", secret="s3cret"))
    server.head["concurrency"] = 2
    open_agent.root.joinpath("etc", "agent.json").chmod(0o600)
    open_agent.start()
    server.until(open_agent.run_folder("other").joinpath("other").exists)
    script = (
        "#!/bin/sh\ncd $STOKER_RUN_DIR; runs=$(dirname $PWD)\n"
        "for file in ../other/other ../other/entry.json entry.json launch.json $runs/../../etc/agent.json; do\n"
        "  cat $file && echo read $file; done\n"
        "ls $runs && echo listed; echo x >result.json && echo wrote; mv progress moved && echo renamed; true\n"
    )
    server.give(*server.deployments, server.entry("c1", script, options={"user": "nobody"}))
    assert server.result("c1")["deploy_stdout"] == ""


@pytest.mark.parametrize("trick", ["ln -s", "ln"])
def test_an_output_that_is_a_link_does_not_make_the_agent_read_files_of_others(server, open_agent, trick):
    secret = open_agent.work / "secret"
    secret.write_text("s3cret")
    secret.chmod(0o600)
    script = f"#!/bin/sh\n{trick} {secret} $heat_outputs_path.answer; mkfifo $heat_outputs_path.pipe; true\n"
    result = run(server, open_agent, script, ["answer", "pipe"], user="nobody")
    assert "s3cret" not in str(result)


def test_hooks_execute_as_the_user(server, open_agent):
    """A built-in hook keeps its state apart, a delivered hook is a copy of its own, and the user must reach others."""
    if not Path(SYSTEM_PYTHON).exists():
        pytest.skip("the agent's Python is in the home of root")
    target = open_agent.work / "made"
    entry = server.entry("c1", {"path": str(target), "content": "text\n"}, group="file", options={"user": "nobody"})
    result = open_agent.run(entry, python=SYSTEM_PYTHON)
    assert (result["deploy_status_code"], result.get("deploy_changed")) == (0, True), result
    states = open_agent.root / "state" / "hooks-of-users"
    assert [path.stat().st_uid for path in (target, *states.iterdir())] == [USER.pw_uid] * 2
    content = b"""#!/bin/sh
cat >/dev/null
file=$(stat -c '%U %a' "$0")
printf '{"deploy_status_code": 0, "ran": "%s %s %s"}' "$(id -un)" "$file" "$(basename "$0")"
"""
    server.files["shout.sh"] = content
    hook = {"url": f"{server.url}/shout.sh", "sha256": hashlib.sha256(content).hexdigest()}
    for id in ("c2", "c3"):
        options = {"user": "nobody", "hook": hook}
        assert open_agent.run(server.entry(id, "x", group="shout", options=options)).get("ran") == (
            "nobody nobody 500 shout"
        )
    kept = open_agent.root / "state" / "delivered-hooks" / hook["sha256"]
    assert (kept.stat().st_uid, kept.stat().st_mode & 0o777, kept.read_bytes()) == (0, 0o500, content)
    open_agent.hook("shout", "#!/bin/sh\necho '{}'\n")
    open_agent.root.joinpath("hooks").chmod(0o700)
    result = open_agent.run(server.entry("c4", "text", group="shout", options={"user": "nobody"}))
    assert result["deploy_status_code"] == 126
    assert result["deploy_status_reason"].startswith(f"The user nobody cannot use {open_agent.root}/hooks/shout")


def test_on_cancel_executes_as_the_user_too(server, open_agent):
    script = "#!/bin/sh\nid -un >$WORK/user; ln -s /etc $STOKER_RUN_DIR/work/on-cancel; sleep 1000\n"
    cleanup = "#!/bin/sh\nid -un >$WORK/cleanup; echo cleaned\n"
    open_agent.begin(server.entry("c1", script, options={"user": "nobody", "on_cancel": cleanup}))
    server.until(lambda: open_agent.lines("user"))
    server.change(cancel=True)
    result = server.result("c1")
    assert (result["deploy_status_code"], result["deploy_stdout"]) == (143, "cleaned\n")
    assert open_agent.lines("cleanup") == ["nobody"]


IMPOSSIBLE = [
    ({"user": "no-such-user"}, "The option user names 'no-such-user', and this server has no such user"),
    ({"memory_max": "much"}, "The option memory_max cannot be 'much'"),
    ({"nice": 77}, "The option nice cannot be 77"),
    ({"cpu_max": "50%"}, "The limits cpu_max cannot be enforced on this server"),
    ({"memory_max": "64M", "tasks_max": 20}, "The limits memory_max, tasks_max cannot be enforced on this server"),
]


def test_a_run_whose_user_or_limits_are_impossible_fails_before_it_starts_unless_it_wants_best_effort(
    server, open_agent
):
    script = "#!/bin/sh\ntouch $WORK/ran\n"
    open_agent.begin(*(server.entry(f"c{number}", script, options=row[0]) for number, row in enumerate(IMPOSSIBLE)))
    for number, (_, reason) in enumerate(IMPOSSIBLE):
        result = server.result(f"c{number}")
        assert result["deploy_status_code"] == 1
        assert result["deploy_status_reason"].startswith(reason)
    assert not open_agent.work.joinpath("ran").exists()
    options = {"cpu_max": "50%", "tasks_max": 20, "limits": "best_effort"}
    result = open_agent.run(server.entry("best", "#!/bin/sh\necho ran\n", options=options))
    assert (result["deploy_status_code"], result["deploy_stdout"]) == (0, "ran\n")
    assert [line.split()[3] for line in result["deploy_stderr"].splitlines()] == ["cpu_max", "tasks_max"]


@pytest.fixture
def outside_agent(open_agent):
    """An agent whose program is outside of /tmp, which its runs may replace."""
    if not Path(SYSTEM_PYTHON).exists() or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("this machine has no Python outside of /tmp, or permits no mounts")
    open_agent.root.mkdir(exist_ok=True)
    program = open_agent.root / "stoker-agent.pyz"
    build(program)
    open_agent.start(python=SYSTEM_PYTHON, program=(str(program),))
    return open_agent


def test_a_private_tmp_is_empty_invisible_to_others_and_gone_after_the_run(server, outside_agent):
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="stoker-test-") as outside:
        script = (
            "#!/bin/sh\nls -A /tmp /var/tmp; echo $TMPDIR; touch /tmp/mine; ls /var/tmp\n"
            f"test -e {outside.name} || echo hidden\n"
        )
        result = run(server, outside_agent, script, private_tmp=True, user="nobody")
    assert result["deploy_stdout"].splitlines() == ["/tmp:", "", "/var/tmp:", "/tmp", "mine", "hidden"], result
    assert not Path("/tmp/mine").exists()
    assert not outside_agent.run_folder("c1").joinpath("tmp").exists()


@pytest.mark.parametrize("user", ["nobody", "root"])
def test_only_processes_of_the_run_enter_its_private_tmp(server, outside_agent, user):
    script = f"#!/bin/sh\ntouch $WORK/begun; {HOLD}; ls $TMPDIR\n"
    server.give(server.entry("c1", script, options={"private_tmp": True, "user": user}))
    server.until(lambda: outside_agent.work.joinpath("begun").exists())
    folder = outside_agent.run_folder("c1") / "tmp"
    assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (pwd.getpwnam(user).pw_uid, 0o700)
    outside_agent.run_folder("c1").chmod(0o755)
    command = ["touch", str(folder / "intruder"), str(folder / "tmp" / "intruder")]
    assert subprocess.run(command, user="daemon", check=False).returncode
    outside_agent.release()
    assert server.result("c1")["deploy_stdout"] == ""


def test_a_private_tmp_that_the_user_replaced_by_a_link_is_not_mounted(server, outside_agent):
    target = outside_agent.work / "target"
    target.mkdir(mode=0o700)
    script = f"#!/bin/sh\ncd $STOKER_RUN_DIR/tmp; rmdir tmp; ln -s {target} tmp; touch $WORK/begun; sleep 1000\n"
    options = {"private_tmp": True, "user": "nobody", "on_cancel": "#!/bin/sh\ntrue\n"}
    server.give(server.entry("c1", script, options=options))
    server.until(lambda: outside_agent.work.joinpath("begun").exists())
    server.change(cancel=True)
    assert "on_cancel ended with 126" in server.result("c1")["deploy_status_reason"]
    assert target.stat().st_mode & 0o777 == 0o700


def test_an_agent_without_roots_rights_cannot_switch_users(server, open_agent):
    open_agent.root.mkdir(exist_ok=True)
    for path in (open_agent.root, *open_agent.root.rglob("*"), open_agent.work):
        os.chown(path, USER.pw_uid, USER.pw_gid)
    if not Path(SYSTEM_PYTHON).exists():
        pytest.skip("the agent's Python is in the home of root")
    server.give(
        server.entry("c1", "true", options={"user": "daemon"}),
        server.entry("c2", "id -un", options={"user": "nobody", "nice": 5}),
        server.entry("c3", "true", options={"private_tmp": True}),
        server.entry("c4", "echo $TMPDIR", options={"private_tmp": True, "limits": "best_effort"}),
    )
    open_agent.start(python=SYSTEM_PYTHON, user=USER.pw_uid, group=USER.pw_gid, extra_groups=[])
    reason = "The agent runs as nobody, without root's rights, and cannot run this config as daemon"
    assert server.result("c1")["deploy_status_reason"].startswith(reason)
    assert server.result("c2")["deploy_stdout"] == "nobody\n"
    assert server.result("c3")["deploy_status_reason"].startswith("The limits private_tmp cannot be enforced")
    assert server.result("c4")["deploy_stdout"] == f"{open_agent.run_folder('c4')}/tmp/tmp\n"
