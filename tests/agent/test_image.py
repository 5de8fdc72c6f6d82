"""Golden images: installed without an identity, by hand or by the element, enrolled at first boot."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from stoker_agent.commands.build import build
from support.agents import AGENT_PYTHON
from support.install_line import Machine
from support.server import served

pytestmark = pytest.mark.slow

_ELEMENT = Path(__file__).parents[2] / "agent" / "elements" / "stoker-agent"


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "stoker-agent.pyz"
    build(path)
    return path


@pytest.fixture
def image(tmp_path):
    """An empty image, and the files that go into it."""
    tmp_path.joinpath("token").write_text("t0ken\n")
    tmp_path.joinpath("ca").write_text("certificate")
    return tmp_path / "image"


def install(program, image, *words):
    command = [AGENT_PYTHON, str(program), "install", "--image-root", str(image), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def by_hand(program, image):
    folder = program.parent
    words = ("--url", "https://stoker.example/", "--token-file", str(folder / "token"), "--ca-file", str(folder / "ca"))
    done = install(program, image, *words)
    assert done.returncode == 0, done.stderr
    return install(program, image, *words)  # repeatable


def by_element(program, image):
    """
    Run the element's scripts as diskimage-builder does: extra-data.d outside of the image, install.d inside, where the
    folder of the scripts is read-only.
    """
    folder = program.parent
    hooks = folder / "hooks"
    environment = {**os.environ, "TMP_HOOKS_PATH": str(hooks), "STOKER_IMAGE_ROOT": str(image)}
    environment |= {"DIB_STOKER_URL": "https://stoker.example", "DIB_STOKER_TOKEN_FILE": str(folder / "token")}
    environment |= {"DIB_STOKER_AGENT": str(program), "DIB_STOKER_CA_FILE": str(folder / "ca")}
    hooks.joinpath("install.d").mkdir(parents=True)
    copy = hooks / "install.d" / "50-stoker-agent"
    copy.write_bytes(_ELEMENT.joinpath("install.d", "50-stoker-agent").read_bytes())
    subprocess.run([str(_ELEMENT / "extra-data.d" / "50-stoker-agent")], env=environment, check=True)
    assert hooks.joinpath("stoker-agent", "token").stat().st_mode & 0o777 == 0o600
    before = sorted(hooks.rglob("*"))
    done = subprocess.run(["bash", str(copy)], env=environment, capture_output=True, text=True, check=False)
    assert sorted(hooks.rglob("*")) == before
    return done


@pytest.mark.parametrize("how", [by_hand, by_element])
def test_an_image_has_program_unit_and_token_but_no_identity(program, image, how):
    done = how(program, image)
    assert done.returncode == 0, done.stderr
    etc = image / "etc" / "stoker-agent"
    assert json.loads(etc.joinpath("enrollment.json").read_text()) == {
        "url": "https://stoker.example",
        "ca_file": "/etc/stoker-agent/ca.pem",
        "token": "t0ken",
        "proxy": None,
    }
    assert etc.joinpath("enrollment.json").stat().st_mode & 0o777 == 0o600
    assert image.joinpath("opt/stoker-agent/stoker-agent.pyz").read_bytes() == program.read_bytes()
    unit = image / "etc/systemd/system/stoker-agent.service"
    assert "ExecStart=/usr/bin/env python3 /opt/stoker-agent/stoker-agent.pyz run" in unit.read_text()
    link = image / "etc/systemd/system/multi-user.target.wants/stoker-agent.service"
    assert link.readlink() == Path("/etc/systemd/system/stoker-agent.service")
    assert image.joinpath("usr/local/bin/stoker-agent").readlink() == Path("/opt/stoker-agent/stoker-agent.pyz")
    assert sorted(path.name for path in etc.iterdir()) == ["ca.pem", "enrollment.json", "hooks"]
    assert list(image.joinpath("var/lib/stoker-agent").iterdir()) == []


def test_an_image_of_a_server_is_refused(program, image):
    etc = image / "etc" / "stoker-agent"
    etc.mkdir(parents=True)
    etc.joinpath("agent.json").write_text("{}")
    done = install(program, image, "--url", "http://x", "--token-file", str(program.parent / "token"))
    assert (done.returncode, "this image is a server already" in done.stderr) == (1, True)
    assert "needs --url and --token-file" in install(program, image).stderr


@pytest.mark.slow
def test_user_data_installs_the_agent(tmp_path):
    machine = Machine(tmp_path / "machine")
    with served(tmp_path) as stoker, contextlib.ExitStack() as cleanup:
        cleanup.callback(machine.end)
        data = stoker.run("server", "user-data", "web2").stdout
        assert data.startswith("#cloud-config\n")
        [[shell, option, line]] = yaml.safe_load(data)["runcmd"]
        assert (shell, option, stoker.url in line) == ("/bin/sh", "-c", True)
        done = machine.paste(line)
        assert done.returncode == 0, done.stderr
        stoker.until(lambda: stoker.json("server", "show", "web2")["status"] == "ONLINE")

        data = stoker.run("server", "user-data", "web3", "--proxy", "http://proxy.example:3128").stdout
        assert "env http_proxy=http://proxy.example:3128 python3 -c" in yaml.safe_load(data)["runcmd"][0][2]
