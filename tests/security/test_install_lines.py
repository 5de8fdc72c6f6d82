"""The install line: any shell can run it; it verifies what it runs, keeps its token, and names remedies."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from stoker.servers.agent_bundle import AgentBundle
from support.certificates import Authority
from support.http_stub import Said, answering
from support.install_line import Machine, command_lines_with
from support.server import STOKER, served

TOKEN = "0123456789abcdef" * 4
DOWNLOADS = ("python3", "curl", "wget")


@pytest.fixture(scope="module")
def stoker(tmp_path_factory):
    """With TLS by a private CA, which the machines do not trust yet; the chain names it."""
    authority = Authority(tmp_path_factory.mktemp("ca"))
    authority.issue("127.0.0.1", with_root=True)
    with served(tmp_path_factory.mktemp("enrollment"), *authority.flags, ca_file=authority.file) as running:
        yield running


@pytest.fixture
def machine(request, tmp_path) -> Iterator[Machine]:
    shell = getattr(request, "param", "sh")
    if shutil.which(shell) is None:
        pytest.skip(f"this host has no {shell}")
    made = Machine(tmp_path / "machine", shell)
    yield made
    made.end()


in_each_shell = pytest.mark.parametrize("machine", ["dash", "bash"], indirect=True)


def add_download(machine: Machine, download: str) -> None:
    for name in {download, "sha256sum"} - {"python3"}:
        if shutil.which(name) is None:
            pytest.skip(f"this host has no {name}")
        machine.add_tool(name)


@in_each_shell
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


@in_each_shell
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


@in_each_shell
@pytest.mark.parametrize("download", DOWNLOADS)
def test_a_failed_download_ends_the_line(machine, download):
    add_download(machine, download)
    with answering(lambda _: Said(404)) as there:
        line = AgentBundle(there.url).command(TOKEN, download)
        missing = machine.paste(line)
    away = machine.paste(line)
    for pasted, problem in ((missing, "404"), (away, "refused")):
        assert pasted.returncode != 0
        if download == "python3":
            assert re.fullmatch(rf"stoker-agent: .*{problem}.*\n", pasted.stderr)
    assert not machine.root.exists()


@in_each_shell
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


def enroll(stoker, name):
    return stoker.heat("POST", "/servers", {"name": name}).body["enrollment"]


def enroll_agent(stoker, machine, *words, **given):
    """Run the agent's own command, with which the line ends."""
    command = [sys.executable, "-m", "stoker_agent", "enroll", "--url", stoker.url, "--root", str(machine.root), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **given)


def test_an_agent_does_not_trust_another_ca(stoker, machine, tmp_path):
    """The one that the line brought is the only one that counts."""
    other = Authority(tmp_path / "other")
    token = enroll(stoker, "web2")["token"]
    refused = enroll_agent(stoker, machine, "--ca-file", str(other.file), input=token)
    assert refused.returncode == 1
    assert "CERTIFICATE_VERIFY_FAILED" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_the_token_is_on_no_command_line_while_it_is_used(machine):
    """Looked for at the moment at which every program of the line is there: when the agent asks for its key."""
    seen = []
    token = secrets.token_hex(32)  # of its own: other tests paste theirs at the same time

    def decide(asked):
        if asked.verb == "POST":
            seen.append((asked.json["token"], command_lines_with(token)))
            return Said(201, {"server_id": "s", "name": "n", "key": "s.k", "poll_wait": 1})
        if asked.path == "/agent/v1/install":
            return Said(200, bundle.script)
        return Said(200, bundle.program()) if asked.path.endswith(".pyz") else Said(404)

    with answering(decide) as there:
        bundle = AgentBundle(there.url)
        line = bundle.command(token)
        # The shell is given the line on standard input, as a person's is: `sh -c` would show it itself.
        variables = {"PATH": str(machine.tools), "HOME": str(machine.root), "STOKER_ROOT": str(machine.root)}
        pasted = subprocess.run(
            ["/bin/sh"], input=f"{line}\n", env=variables, capture_output=True, text=True, timeout=120, check=False
        )
        machine.end()
    assert pasted.returncode == 0, pasted.stderr
    assert seen == [(token, [])]


@pytest.mark.parametrize(("user", "uses_sudo"), [("0", False), ("1000", True)])
def test_users_need_sudo_unless_the_root_is_private(machine, user, uses_sudo):
    """Sudo gets the token by standard input, not in its words or its environment."""
    log = machine.tools.parent / "sudo.log"
    machine.add_tool("sudo", f'echo "$*" >> {log}\nread token\necho "token $token" >> {log}')
    machine.add_tool("id", f"echo {user}")
    line = AgentBundle("http://127.0.0.1:1").command(TOKEN)
    machine.paste(line, STOKER_ROOT="")
    assert log.exists() == uses_sudo
    if uses_sudo:
        words, token = log.read_text().splitlines()
        assert words.startswith("python3 -c ")
        assert TOKEN not in words
        assert token == f"token {TOKEN}"
        log.unlink()
    machine.paste(line)
    assert not log.exists()


def test_the_agent_refuses_a_token_on_its_command_line(stoker, machine):
    token = enroll(stoker, "web3")["token"]
    run = partial(enroll_agent, stoker, machine, "--ca-file", str(stoker.ca_file))
    refused = run("--token", token)
    assert refused.returncode == 1
    assert all(remedy in refused.stderr for remedy in ("standard input", "--token-file", "STOKER_TOKEN"))
    assert "missing" in run(input="").stderr
    # The same agent may ask again with the same token: by each of the three ways.
    file = machine.tools / "token"
    file.write_text(f"{token}\n")
    for done in (run(input=token), run("--token-file", str(file)), run(env={**os.environ, "STOKER_TOKEN": token})):
        assert done.returncode == 0, done.stderr


def test_a_public_url_is_in_the_line_without_a_warning(tmp_path):
    with served(tmp_path, "--public-url", "https://stoker.example.org/") as stoker:
        enrollment = enroll(stoker, "web")
        assert "https://stoker.example.org/agent/v1/install" in enrollment["command"]
        assert (enrollment["url"], enrollment["warning"]) == ("https://stoker.example.org", None)


def test_builds_of_agent_and_install_script_are_reproducible(stoker, tmp_path):
    """Any process behind one address hands out what the line of another names."""
    program = stoker.request("GET", "/agent/v1/stoker-agent.pyz")
    target = tmp_path / "agent.pyz"
    subprocess.run([*STOKER, "agent", "build", str(target)], env={**os.environ, "TZ": "Asia/Tokyo"}, check=True)
    assert program.raw == target.read_bytes()
    assert program.headers["ETag"].strip('"') in stoker.request("GET", "/agent/v1/install").raw.decode()
    assert "stoker_agent/install.py" not in zipfile.ZipFile(target).namelist()


def test_the_served_agent_is_the_installed_one(monkeypatch, tmp_path):
    """A file kept under the version's name once outlived its content."""
    package = tmp_path / "stoker_agent"
    shutil.copytree(Path(__file__).parents[2] / "agent" / "src" / "stoker_agent", package)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    first = AgentBundle("http://x").program()
    package.joinpath("agent.py").write_text("changed = True\n")
    assert AgentBundle("http://x").program() != first
