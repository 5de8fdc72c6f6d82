"""The relay under a real systemd: its user, its credentials, restarts, and an agent that is installed through it."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


def test_the_service_of_a_relay(machines, stoker, image):
    machine = machines.make("site", booted=True, image=image)
    machine.run(["mount", "--make-rshared", "/"])  # as on a computer: credentials are mounts that must propagate

    url = f"http://{machine.address}:8005"
    key = stoker.heat("POST", "/relays", {"name": "site", "url": url}).body["relay"]["key"]
    machine.put("/root/key", key, 0o600)
    words = ["--center", stoker.url, "--key-file", "/root/key", "--host", "0.0.0.0", "--insecure-http"]
    install = ["stoker", "relay", "install", *words]
    machine.put("/root/other.key", f"{key[:36]}.{'0' * 64}", 0o600)
    for wrong, reason in (
        (["--tls-cert", "/root/key", "--tls-key", "/root/key"], "the relay does not serve: cannot use --tls-cert"),
        (["--key-file", "/root/other.key"], "it cannot reach the central Stoker: it refuses the key of this relay"),
    ):
        refused = machine.run([*install, *wrong], check=False)
        assert (refused.returncode, reason in refused.stderr) == (1, True), refused
    machine.run(install)
    read_health = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8005/healthz').read().decode())"
    machine.until("python3", "-c", read_health)

    pid = machine.show("MainPID", "stoker-relay")
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
    assert machine.show("Result", "stoker-relay") == "success"
