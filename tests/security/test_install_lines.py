"""The install line works in any shell, with whatever the machine has, and names the remedy otherwise."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest

from stoker.servers.agent_bundle import AgentBundle
from support.certificates import Authority
from support.http_stub import Said, answering
from support.install_line import Machine
from support.server import served

TOKEN = "0123456789abcdef" * 4
SHELLS = ("dash", "bash")
DOWNLOADS = ("python3", "curl", "wget")


@pytest.fixture(scope="module")
def stoker(tmp_path_factory):
    """With TLS by a private CA, which the machines do not trust yet."""
    authority = Authority(tmp_path_factory.mktemp("ca"))
    authority.issue("127.0.0.1", with_root=True)
    with served(tmp_path_factory.mktemp("lines"), *authority.flags, ca_file=authority.file) as running:
        yield running


@pytest.fixture(params=SHELLS)
def machine(request, tmp_path):
    if shutil.which(request.param) is None:
        pytest.skip(f"this host has no {request.param}")
    made = Machine(tmp_path / "machine", request.param)
    yield made
    made.end()


def add_download(machine: Machine, download: str) -> None:
    for name in {download, "sha256sum"} - {"python3"}:
        if shutil.which(name) is None:
            pytest.skip(f"this host has no {name}")
        machine.add_tool(name)


@pytest.mark.slow
@pytest.mark.parametrize("download", DOWNLOADS)
def test_each_download_installs_and_enrolls(stoker, machine, download):
    add_download(machine, download)
    name = f"{download}-{machine.root.parent.parent.name}"
    printed = stoker.run("server", "enroll", name, "--with", download)
    [line] = printed.stdout.splitlines()
    assert len(line) < 1000
    pasted = machine.paste(line)
    assert pasted.returncode == 0, pasted.stderr
    assert f"enrolled as server {name} ({machine.config['server_id']}) at {stoker.url}" in pasted.stdout
    assert machine.root.joinpath("etc", "ca.pem").read_bytes() == stoker.ca_file.read_bytes()
    assert len(machine.agents) == 1


@pytest.mark.parametrize(
    ("download", "altered"), [*((name, "the install script") for name in DOWNLOADS), ("python3", "the program")]
)
def test_an_altered_download_does_not_run(machine, download, altered):
    """The token stays unused, too."""
    add_download(machine, download)

    def decide(asked):
        is_script = asked.path == "/agent/v1/install"
        content = bundle.script if is_script else bundle.program()
        return Said(
            200, b"raise SystemExit(0)\n" + content if is_script == (altered == "the install script") else content
        )

    with answering(decide) as there:
        bundle = AgentBundle(there.url)
        pasted = machine.paste(bundle.command(TOKEN, download))
        assert there.verbs == ["GET"] * (1 if altered == "the install script" else 2)
    assert pasted.returncode == 1
    assert re.fullmatch(r"stoker-agent: .*is not the one.*stoker server enroll.* again\n", pasted.stderr)
    assert not machine.root.joinpath("stoker-agent.pyz").exists()


@pytest.mark.parametrize("download", ["curl", "wget"])
def test_a_failed_download_ends_the_line(machine, download):
    add_download(machine, download)
    with answering(lambda _: Said(404)) as there:
        pasted = machine.paste(AgentBundle(there.url).command(TOKEN, download))
    assert pasted.returncode != 0
    assert not machine.root.exists()


def test_a_line_without_python_names_the_package(machine):
    machine.tools.joinpath("python3").unlink()
    pasted = machine.paste(f"{AgentBundle('http://127.0.0.1:1').command(TOKEN)}; echo the shell goes on")
    assert pasted.stderr == "stoker-agent: install python3 (3.8 or newer) first\n"
    assert pasted.stdout == "the shell goes on\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_line_without_sudo_names_the_remedies(stoker, tmp_path):
    """The system's Python, because another user may not read this one."""
    if shutil.which("python3", path="/usr/bin") is None:
        pytest.skip("the system has no Python")
    line = stoker.heat("POST", "/servers", {"name": "of a user"}).body["enrollment"]["command"]
    pasted = subprocess.run(
        ["/bin/sh", "-c", line.replace("command -v sudo", "command -v no-sudo-here")],
        **{"env": {"PATH": "/usr/bin:/bin"}, "cwd": "/", "user": 65534, "group": 65534, "extra_groups": []},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert pasted.returncode == 1
    assert re.fullmatch(r"stoker-agent: this needs root and there is no sudo: .*STOKER_ROOT.*\n", pasted.stderr)
