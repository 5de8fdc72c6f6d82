"""Machines boot from one image with the agent, made by diskimage-builder, and enroll themselves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
#: What each machine of the image must have for itself.
_NAMES = ("web-1", "web-2")


_ELEMENTS = Path(__file__).parents[2] / "agent" / "elements"
#: An element for the build: the builder's own system is the system of the image, and no block device is made of it.
_SYSTEM = {
    "element-deps": "dpkg\nno-final-image\n",
    "element-provides": "operating-system\n",
    "environment.d/10-system.bash": "export DISTRO_NAME=debian DIB_RELEASE=bookworm\n",
    "root.d/10-system": """#!/bin/sh
set -e
cd /
tar -c --one-file-system --exclude ./opt/\\* --exclude ./srv/\\* --exclude ./tmp/\\* \\
    --exclude ./var/lib/apt/lists/\\* . | tar -C "$TARGET_ROOT" -x
rm -r "$TARGET_ROOT"/etc/apt/sources.list*
""",
    "block-device.d/10-none": """#!/bin/sh
state=$TMP_BUILD_DIR/states/block-device
mkdir -p "$TMP_BUILD_DIR/mnt" "$state"
echo '{"blockdev": {"image0": {"image": "/dev/null"}}}' > "$state/state.json"
python3 -c 'import pickle, sys; pickle.dump([], sys.stdout.buffer)' > "$state/nodes.pickle"
echo IMAGE_BLOCK_DEVICE=/dev/null
""",
    "cleanup.d/99-keep": """#!/bin/sh
tar -C "$TARGET_ROOT" -cf /srv/image.tar etc/stoker-agent etc/systemd/system opt usr/local/bin var/lib/stoker-agent
""",
}
_BUILD = "import sys; from diskimage_builder import disk_image_create as d; sys.argv[0] = 'disk-image-create'; d.main()"


def build(stoker, machines, base, image_builder, folder):
    """Build an image with the real diskimage-builder in a machine, and return the folder with what it added."""
    image = folder / "image"
    image.mkdir()
    token = stoker.json("server", "enroll", "--many", "--limit", "2", "--label", "role=web")["enrollment"]["token"]
    with machines.make("builder", base=base) as builder:
        builder.put_folder("/opt/dib", image_builder)
        builder.put("/usr/lib/python3/dist-packages/dib.pth", "/opt/dib\n")  # sudo removes PYTHONPATH
        builder.put_folder("/opt/elements", _ELEMENTS)
        for name, text in _SYSTEM.items():
            builder.put(f"/opt/elements/system/{name}", text, 0o755 if text.startswith("#!") else 0o644)
        builder.put("/srv/ca", "certificate")
        builder.put("/srv/stoker-agent.pyz", stoker.request("GET", "/agent/v1/stoker-agent.pyz").raw)
        builder.put("/srv/token", token, 0o600)
        words = ("-n", "-t", "tar", "--min-tmpfs", "1", "-o", "/srv/web", "system", "stoker-agent")
        builder.run(
            ["python3", "-c", _BUILD, *words],
            environment={
                "ELEMENTS_PATH": "/opt/elements",
                "DIB_STOKER_URL": stoker.url,
                "DIB_STOKER_TOKEN_FILE": "/srv/token",
                "DIB_STOKER_AGENT": "/srv/stoker-agent.pyz",
                "DIB_STOKER_CA_FILE": "/srv/ca",
            },
            timeout=600,
        )
        assert builder.run(["find", "/tmp", "-name", "token"]).stdout == "", "the build leaves no token"
        subprocess.run(["tar", "-C", str(image), "-xf", f"{builder.outer_root}/srv/image.tar"], check=True)
    return image


@pytest.mark.timeout(600)
def test_machines_of_one_image_enroll_themselves_at_their_first_boot(
    machines, stoker, sudo_base, image_builder, tmp_path
):
    image = build(stoker, machines, sudo_base, image_builder, tmp_path)
    assert image.joinpath("etc/stoker-agent/enrollment.json").stat().st_mode & 0o777 == 0o600
    assert image.joinpath("etc/stoker-agent/ca.pem").read_text() == "certificate"
    assert not image.joinpath("etc/stoker-agent/agent.json").exists()
    booted = {name: machines.make(name, booted=True, image=image) for name in _NAMES}
    stoker.until(lambda: {row["name"] for row in stoker.json("server", "list", "--status", "online")} >= {*_NAMES})
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
    assert {row["name"] for row in stoker.json("server", "list")} == {*_NAMES}
