"""A script's output on the terminal of who looks at an agent; ``client/test_terminal`` is about operators."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

import pytest

from stoker_client.terminal import has_controls
from support.processes import running

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202ehello\n"


def shown_by(command: list[str], environment: Mapping[str, str]) -> str:
    """What a program writes to a terminal."""
    master, slave = os.openpty()
    environment = {**environment, "TERM": "dumb", "PYTHONUTF8": "1"}
    shown = b""
    try:
        with running(command, env=environment, stdout=slave, stderr=slave):
            os.close(slave)
            with suppress(OSError):  # Linux says so that the other end is closed
                while chunk := os.read(master, 65536):
                    shown += chunk
    finally:
        os.close(master)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["logs --run c1", "logs", "status", "logs --run \x1b]0;owned\x07hello"])
def test_the_agents_commands_show_control_characters(tmp_path, command):
    run, logs = tmp_path / "state" / "runs" / "c1", tmp_path / "logs"
    for folder in (run, logs):
        folder.mkdir(parents=True)
    for file in (run / "stdout", run / "stderr", logs / "agent.log"):
        file.write_text(EVIL)
    failure = {"message": EVIL, "since": 0, "is_refused": False}
    tmp_path.joinpath("state", "status.json").write_text(json.dumps({"failures": {"stoker": failure}, "sources": []}))
    words = [word for word in command.split(" ") if word]
    shown = shown_by([sys.executable, "-m", "stoker_agent", *words, "--root", str(tmp_path)], os.environ)
    assert "hello" in shown
    assert "\\x1b]0;owned\\x07" in shown
    assert not has_controls(shown), repr(shown)


def test_the_agent_writes_output_unchanged_to_a_file(tmp_path):
    run = tmp_path / "state" / "runs" / "c1"
    run.mkdir(parents=True)
    run.joinpath("stdout").write_text(EVIL)
    command = [sys.executable, "-m", "stoker_agent", "logs", "--run", "c1", "--root", str(tmp_path)]
    assert subprocess.run(command, capture_output=True, check=True).stdout.decode() == EVIL
