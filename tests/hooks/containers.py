"""Machines with a container engine, and the image that their containers use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from support.machine_bases import Base
from support.machines import Machine, Machines

#: The image with busybox, for ``docker run`` and for pods.
IMAGE = "localhost/box:1"
#: The command that makes the image. An imported image has no PATH, so the import states it.
IMPORT = """
mkdir -p /tmp/image/bin
cp /bin/busybox /tmp/image/bin/
for name in cat echo env false hostname sh sleep test touch true; do ln -sf busybox /tmp/image/bin/$name; done
tar -C /tmp/image -c . | {engine} import -c 'ENV PATH=/bin' - {image}
"""
#: The host forbids podman to raise limits, and crun needs a host with one hierarchy of control groups.
_PODMAN = """[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
"""


@contextmanager
def container_machine(machines: Machines, base: Base, engine: str) -> Iterator[Machine]:
    """Yield a booted machine with the image. ``engine`` is docker, whose daemon then runs, or podman."""
    with machines.make(engine, booted=True, base=base) as machine:
        if engine == "podman":
            machine.put("/etc/containers/containers.conf", _PODMAN)
            machine.run(["systemctl", "stop", "docker.socket", "docker", "containerd"])
        else:
            machine.until("docker", "info")
        machine.run(["sh", "-ec", IMPORT.format(engine=engine, image=IMAGE)])
        yield machine
