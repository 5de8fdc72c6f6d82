"""The relay under a real systemd: its user, its credentials, restarts, and an agent that is installed through it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

import stoker_relay
from support.server import served

pytestmark = pytest.mark.slow
_SOURCES = Path(stoker_relay.__file__).parents[1]
_PROGRAM = """#!/usr/bin/python3
import sys
sys.path[:0] = ["/opt/stoker/src", "/opt/stoker/lib"]
from stoker_client.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def image(tmp_path) -> Path:
    """The files of a machine with Stoker's package: hard links of the libraries of this Python."""
    folder = tmp_path / "image"
    home = folder / "opt" / "stoker"
    home.mkdir(parents=True)
    subprocess.run(["cp", "-al", sysconfig.get_path("purelib"), str(home / "lib")], check=True)
    shutil.copytree(_SOURCES, home / "src", ignore=shutil.ignore_patterns("__pycache__"))
    program = folder / "usr" / "local" / "bin" / "stoker"
    program.parent.mkdir(parents=True)
    program.write_text(_PROGRAM)
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
    program.chmod(0o755)
    return folder


def test_the_service_of_a_relay(machines, tmp_path, image):
    with served(tmp_path, "--insecure-http", host=machines.host_address) as stoker:
        machine = machines.make("site", booted=True, image=image)
        machine.run(["mount", "--make-rshared", "/"])  # as on a computer: credentials are mounts that must propagate

        def show(name: str) -> str:
            return str(machine.run(["systemctl", "show", "-P", name, "stoker-relay"]).stdout.strip())

        url = f"http://{machine.address}:8005"
        key = stoker.heat("POST", "/relays", {"name": "site", "url": url}).body["relay"]["key"]
        machine.put("/root/key", key, 0o600)
        words = ["--centre", stoker.url, "--key-file", "/root/key", "--host", "0.0.0.0", "--insecure-http"]
        machine.run(["stoker", "relay", "install", *words])
        read_health = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8005/healthz').read().decode())"
        machine.until("python3", "-c", read_health)

        pid = show("MainPID")
        owner = machine.run(["stat", "-c", "%U", f"/proc/{pid}"]).stdout.strip()
        assert owner != "root"
        assert key not in machine.run(["cat", f"/proc/{pid}/cmdline"]).stdout
        assert machine.run(["stat", "-c", "%a", "/etc/stoker-relay/key"]).stdout.strip() == "600"

        machine.enroll(stoker, "--relay", "site")
        assert json.loads(machine.read("/etc/stoker-agent/agent.json"))["url"] == url
        assert stoker.run("run", "site", "--", "echo out of the site").stdout.count("out of the site") >= 1

        machine.run(["kill", "-9", pid])
        replaced = f"systemctl is-active stoker-relay && [ $(systemctl show -P MainPID stoker-relay) != {pid} ]"
        machine.until("sh", "-c", replaced)
        machine.until("python3", "-c", read_health)
        assert stoker.run("run", "site", "--", "echo again").stdout.count("again") >= 1
        machine.run(["systemctl", "stop", "stoker-relay"])
        assert show("Result") == "success"
