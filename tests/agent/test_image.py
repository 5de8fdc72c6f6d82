"""Golden images: installed without an identity; tests/machines boots them."""

from __future__ import annotations

import json
import subprocess

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
    """An empty image, and the token that goes into it."""
    tmp_path.joinpath("token").write_text("t0ken\n")
    return tmp_path / "image"


def install(program, image, *words):
    command = [AGENT_PYTHON, str(program), "install", "--image-root", str(image), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_an_image_is_prepared_again_but_not_one_of_a_server(program, image):
    words = ("--url", "http://x", "--token-file", str(program.parent / "token"))
    for _ in range(2):  # repeatable
        assert install(program, image, *words).returncode == 0
    image.joinpath("etc", "stoker-agent", "agent.json").write_text("{}")
    done = install(program, image, *words)
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
