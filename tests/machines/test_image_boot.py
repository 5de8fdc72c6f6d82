"""Machines that boot from one image with the agent, and enroll themselves."""

from __future__ import annotations

import subprocess

import pytest

from support.agents import AGENT_PYTHON
from support.server import served

pytestmark = pytest.mark.slow
#: What each machine of the image must have for itself.
_NAMES = ("web-1", "web-2")


def install(stoker, folder):
    """Install the agent into a new image with a token for two machines, and return the image's folder."""
    program, token, image = folder / "stoker-agent.pyz", folder / "token", folder / "image"
    program.write_bytes(stoker.request("GET", "/agent/v1/stoker-agent.pyz").raw)
    enrollment = stoker.json("server", "enroll", "--many", "--limit", "2", "--label", "role=web")["enrollment"]
    token.write_text(enrollment["token"])
    words = ("install", "--image-root", str(image), "--url", stoker.url, "--token-file", str(token))
    done = subprocess.run([AGENT_PYTHON, str(program), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return image


def test_machines_of_one_image_enroll_themselves_at_their_first_boot(machines, tmp_path):
    with served(tmp_path, host=machines.host_address) as stoker:
        image = install(stoker, tmp_path)
        booted = {name: machines.make(name, booted=True, image=image) for name in _NAMES}
        stoker.until(lambda: {row["name"] for row in stoker.json("server", "list", "--status", "online")} == {*_NAMES})
        servers = {name: stoker.json("server", "show", name) for name in _NAMES}
        assert servers["web-1"]["id"] != servers["web-2"]["id"]
        for name, machine in booted.items():
            assert servers[name]["labels"] == {"role": "web"}
            assert stoker.run("run", name, "--", "hostname").stdout.count(name) >= 1
            assert machine.exists("/etc/stoker-agent/agent.json")
            assert not machine.exists("/etc/stoker-agent/enrollment.json")
        keys = {machine.read("/etc/stoker-agent/agent.json") for machine in booted.values()}
        assert len(keys) == 2

        # A later boot keeps the identity, and needs no token.
        machine = booted["web-1"]
        machine.power_cut()
        machine.power_on()
        machine.until("stoker-agent", "status")
        assert stoker.run("run", "web-1", "--", "cat /proc/1/comm").stdout.count("systemd") >= 1
        assert stoker.json("server", "show", "web-1")["id"] == servers["web-1"]["id"]
        assert len(stoker.json("server", "list")) == 2
