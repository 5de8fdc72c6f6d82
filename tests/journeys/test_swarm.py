"""`python -m bench.swarm`: simulated agents for a site of any size."""

from __future__ import annotations

import json
import subprocess
import sys
from subprocess import PIPE

from support.processes import running
from support.server import served


def test_the_swarm_command_enrolls_agents_and_reports_them(tmp_path):
    with served(tmp_path) as stoker:
        token = tmp_path / "token"
        token.write_text(stoker.heat("POST", "/enrollments", {"limit": 20}).body["enrollment"]["token"])
        command = ["bench.swarm", "--url", stoker.url, "--agents", "20", "--processes", "2", "--interval", "1"]

        with running([sys.executable, "-m", *command, "--token-file", str(token)], stdout=PIPE, text=True) as swarm:
            reports = (json.loads(line) for line in swarm.stdout)
            last = next(report for report in reports if report["polling"] == 20)
        refused = subprocess.run(
            [sys.executable, "-m", *command, "--token-file", str(token), "--name", "more"],
            capture_output=True,
            text=True,
            timeout=120,
        )

    assert last["counts"]["documents"] == 20
    assert set(last["milliseconds"]) == {"connect", "document", "enroll"}
    assert last["interval"]["counts"]["polls"] <= last["counts"]["polls"]
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "cannot be enrolled: " in refused.stderr
