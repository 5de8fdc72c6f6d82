"""
Stoker with a real OpenStack whose servers are machines.

``STOKER_TEST_OPENSTACK_PEER`` names the OpenStack's directory, and ``STOKER_TEST_OPENSTACK_BOOT`` a program that turns
the servers of Nova's fake hypervisor into machines, which carry their user data out: it is called with the options
``--clouds FILE`` and ``--dir FOLDER``, and has the files of a machine in ``FOLDER/<server id>/up``.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter

from openstack_support.cloud_sites import real_cloud
from stoker_openstack.cloud.credentials import open_entry
from support.processes import running
from support.server import Served, served

#: The entry of clouds.yaml for Stoker: a plain member of a project.
ENTRY = "peer-demo"
_BOOT = "STOKER_TEST_OPENSTACK_BOOT"
_LIST_CALL = re.compile(r'^(\S+ \S+) .*"GET /v2\.1/servers/detail\?(?!all_tenants)\S*" status: 200', re.M)


@dataclass
class RealCloud:
    """The OpenStack. ``machines`` is the folder with the machines' files."""

    folder: Path
    machines: Path

    @property
    def clouds(self) -> Path:
        return self.folder / "clouds.yaml"

    @cached_property
    def _compute(self) -> Adapter:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OS_CLIENT_CONFIG_FILE", str(self.clouds))
            access = open_entry(ENTRY)
        return Adapter(access.session, service_type="compute", interface=access.interface, region_name=access.region)

    def servers(self) -> dict[str, dict[str, Any]]:
        """Return the project's servers by id."""
        listed = self._compute.get("/servers/detail", microversion="2.42").json()["servers"]
        return {server["id"]: server for server in listed if server["status"] != "DELETED"}

    def delete_servers(self) -> None:
        """Delete all servers of the project, which a failed test may have left."""
        for id in self.servers():
            self._compute.delete(f"/servers/{id}", raise_exc=False)

    @contextmanager
    def keypair(self, name: str) -> Iterator[None]:
        """Add a key pair."""
        self._compute.post("/os-keypairs", json={"keypair": {"name": name}}, raise_exc=False)
        try:
            yield
        finally:
            self._compute.delete(f"/os-keypairs/{name}")

    def list_calls(self, since: datetime) -> list[datetime]:
        """Return the times of the project's list calls since a time, by the request log of Nova."""
        log = self.folder.joinpath("log", "compute.log").read_text(errors="replace")
        times = [datetime.fromisoformat(match[1]) for match in _LIST_CALL.finditer(log)]
        return [moment for moment in times if moment >= since]

    def process(self, part: str) -> int:
        """Return the process of a part of the cloud: compute, network or identity."""
        return int(self.folder.joinpath("run", part).read_text().split()[0])

    def read(self, server_id: str, path: str) -> str:
        """Return the content of a file on a machine; empty if there is none."""
        with suppress(FileNotFoundError):
            return (self.machines / server_id / "up" / path.lstrip("/")).read_text()
        return ""

    def console(self, server_id: str) -> str:
        """Return the console of a machine."""
        return (self.machines / server_id / "console.log").read_text(errors="replace")

    @contextmanager
    def stopped(self, part: str) -> Iterator[None]:
        """Stop the process of a part: nothing answers, as behind a network that drops packets."""
        process = self.process(part)
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)

    @contextmanager
    def ended(self, part: str) -> Iterator[None]:
        """
        End the process of a part, and start the process again.

        The command and the environment are those of Glance with the name of the part, because Neutron overwrites its
        own.
        """
        process, model = self.process(part), Path("/proc") / str(self.process("image"))
        command = [*model.joinpath("cmdline").read_bytes().split(b"\0")[:-2], part.encode()]
        pairs = (item.partition(b"=") for item in model.joinpath("environ").read_bytes().split(b"\0") if item)
        environment = {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
        os.kill(process, signal.SIGKILL)
        try:
            yield
        finally:
            log = str(self.folder / "log" / f"{part}.out")
            start = ["sh", "-c", 'setsid "$@" < /dev/null >> "$0" 2>&1 & echo $!', log, *map(os.fsdecode, command)]
            started = subprocess.run(
                start, cwd=self.folder, env=environment, stdout=subprocess.PIPE, check=True, text=True
            )
            pid = started.stdout.strip()
            since = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
            self.folder.joinpath("run", part).write_text(f"{pid} {since}\n")


@contextmanager
def real_machines(folder: Path) -> Iterator[RealCloud]:
    """Turn the servers of the OpenStack into machines. Skips the test without an OpenStack or the program."""
    clouds = real_cloud()
    program = os.environ.get(_BOOT)
    if not program:
        pytest.skip(f"{_BOOT} does not name a program that boots the servers (see docs/develop/tests.md)")
    cloud = RealCloud(clouds.parent, folder / "machines")
    command = [str(cloud.folder / "venv/bin/python"), program, "--clouds", str(clouds), "--dir", str(cloud.machines)]
    plain = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with folder.joinpath("machines.log").open("wb") as log, running(command, env=plain, stdout=log, stderr=log):
        yield cloud


@contextmanager
def stoker_at(cloud: RealCloud, folder: Path, *flags: str) -> Iterator[Served]:
    """Start Stoker with the cloud."""
    path = folder / "home" / ".config" / "openstack" / "clouds.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(cloud.clouds.read_text())
    try:
        with served(folder, "--cloud", ENTRY, *flags) as stoker:
            yield stoker
    finally:
        cloud.delete_servers()


@dataclass
class CloudStack:
    """A stack of a Stoker that may be killed. ``path`` is that of its requests."""

    stoker: Served
    path: str

    @classmethod
    def create(cls, stoker: Served, name: str, template: Mapping[str, Any], **more: Any) -> CloudStack:
        """Request a stack."""
        body = {"stack_name": name, "template": template, "timeout_mins": 30, **more}
        answer = stoker.heat("POST", "/stacks", body)
        assert answer.status == 201, answer.body
        return cls(stoker, f"/stacks/{name}/{answer.body['stack']['id']}")

    def show(self) -> Mapping[str, Any]:
        stack: Mapping[str, Any] = self.stoker.heat("GET", self.path).body["stack"]
        return stack

    @property
    def outputs(self) -> dict[str, Any]:
        return {output["output_key"]: output["output_value"] for output in self.show()["outputs"]}

    def physical_id(self, resource: str) -> str:
        answer = self.stoker.heat("GET", f"{self.path}/resources/{resource}")
        return str(answer.body["resource"]["physical_resource_id"])

    def end(self, status: str, seconds: float = 600) -> None:
        """Wait until the operation has ended, and check the stack's status."""
        limit = time.monotonic() + seconds
        while (stack := self.show())["stack_status"].endswith("IN_PROGRESS"):
            assert time.monotonic() < limit, (stack, self.resources())
            time.sleep(0.2)
        assert stack["stack_status"] == status, (stack["stack_status_reason"], self.resources())

    def resources(self) -> list[tuple[str, str, str]]:
        """Return names, statuses and reasons of the resources that are not complete."""
        listed = self.stoker.heat("GET", f"{self.path}/resources").body["resources"]
        return [
            (item["resource_name"], item["resource_status"], item["resource_status_reason"])
            for item in listed
            if not item["resource_status"].endswith("COMPLETE")
        ]

    def update(self, template: Mapping[str, Any], status: str) -> None:
        """Update the stack."""
        answer = self.stoker.heat("PUT", self.path, {"template": template, "timeout_mins": 30})
        assert answer.status == 202, answer.body
        self.end(status)

    def act(self, action: str, status: str) -> None:
        """Suspend or resume the stack."""
        assert self.stoker.heat("POST", f"{self.path}/actions", {action: None}).status == 200
        self.end(status)

    def delete(self) -> None:
        assert self.stoker.heat("DELETE", self.path).status == 204
        self.end("DELETE_COMPLETE")
