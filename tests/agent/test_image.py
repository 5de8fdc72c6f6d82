"""Golden images: installed without an identity; tests/machines boots them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from stoker_agent.commands.build import build
from support.agents import AGENT_PYTHON

pytestmark = pytest.mark.slow


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


def test_an_image_has_program_unit_and_token_but_no_identity(program, image):
    folder = program.parent
    words = ("--url", "https://stoker.example/", "--token-file", str(folder / "token"), "--ca-file", str(folder / "ca"))
    for _ in range(2):  # repeatable
        done = install(program, image, *words)
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


def test_a_machine_is_prepared_as_an_image(program, image):
    command = [AGENT_PYTHON, str(program), "enroll", "--at-boot", "--url", "https://stoker.example/"]
    done = subprocess.run(
        [*command, "--root", str(image)], input="t0ken\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    invitation = json.loads(image.joinpath("etc", "enrollment.json").read_text())
    assert (invitation["url"], invitation["token"]) == ("https://stoker.example", "t0ken")
    assert list(image.joinpath("state").iterdir()) == []
