"""The test machines themselves: isolation from the host, boot, network, and removal also after a crash."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.machine_network import Subnet, run_ip
from support.machines import Machines
from support.server import served

#: sys_module, sys_rawio and sys_time, as bits.
_HOST_CAPABILITIES = 1 << 16 | 1 << 17 | 1 << 25


@pytest.fixture(scope="module")
def web(machines):
    with machines.make("web", booted=True) as machine:
        yield machine


def test_a_machine_has_its_own_files_processes_name_and_address(machines, web):
    web.put("/etc/app/secret", "only here\n", 0o600)
    assert web.read("/etc/app/secret") == "only here\n"
    assert web.run(["stat", "-c", "%a", "/etc/app/secret"]).stdout == "600\n"
    assert not Path("/etc/app/secret").exists()
    assert web.run(["cat", "/proc/1/comm"]).stdout == "systemd\n"
    assert web.run(["hostname"]).stdout == "web\n"
    assert web.address in web.run(["ip", "-br", "address", "show", "eth0"]).stdout
    with machines.make("other") as other:
        assert not other.exists("/etc/app/secret")


def test_a_machine_cannot_change_the_clock_modules_and_hardware_of_the_host(machines, web):
    with machines.make("waits") as waits:
        for machine in (web, waits):
            for process in ("1", "self"):
                status = dict(line.split(":\t", 1) for line in machine.read(f"/proc/{process}/status").splitlines())
                for kind in ("CapBnd", "CapEff", "CapPrm"):
                    assert not int(status[kind], 16) & _HOST_CAPABILITIES, (machine.name, process, kind)


def test_systemd_runs_units_with_limits(web):
    web.put("/etc/systemd/system/one.service", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran > /root/ran'\n")
    web.run(["systemctl", "start", "one"])
    assert web.read("/root/ran") == "ran\n"
    hog = ["systemd-run", "--wait", "--pipe", "-p", "MemoryMax=20M", "python3", "-c", "x = b'1' * 10**9"]
    assert "Finished with result: signal" in web.run(hog, check=False).stderr


def test_the_cable_can_be_cut(machines, web):
    with socket.create_server((machines.host_address, 0)) as server:
        connect = f"import socket; socket.create_connection(('host', {server.getsockname()[1]}), 2)"
        web.run(["python3", "-c", connect])
        web.cut()
        assert web.run(["python3", "-c", connect], check=False).returncode == 1
        web.join()
        web.until("python3", "-c", connect)


def test_the_host_stays_reachable_when_machines_come_and_go(machines, web):
    with socket.create_server((machines.host_address, 0)) as server:
        connect = f"import socket; socket.create_connection(('host', {server.getsockname()[1]}), 2)"
        web.until("python3", "-c", connect)
        bridge = f"stoker{machines.host_address.split('.')[2]}"
        lowest = ["link", "add", f"{bridge}-low", "address", "02:00:00:00:00:01", "type", "veth"]
        run_ip(*lowest, "peer", "name", f"{bridge}-far")
        try:
            run_ip("link", "set", f"{bridge}-low", "master", bridge, "up")
            web.run(["python3", "-c", connect])
        finally:
            run_ip("link", "delete", f"{bridge}-low")
        web.run(["python3", "-c", connect])


def test_files_survive_a_reboot_and_a_power_cut(machines):
    with machines.make("again", booted=True) as machine:
        machine.put("/var/lib/kept", "kept\n")
        machine.run(["systemctl", "reboot"], check=False)
        machine.wait_reboot()
        machine.power_cut()
        machine.power_on()
        assert machine.read("/var/lib/kept") == "kept\n"
        machine.run(["systemctl", "poweroff"], check=False)
        assert machine.wait_end() == "poweroff"


def test_an_agent_on_a_machine_runs_a_script(machines, web, tmp_path):
    with served(tmp_path, host=machines.host_address) as stoker:
        web.enroll(stoker)
        done = stoker.run("run", "web", "--", "cat /proc/sys/kernel/hostname")
        assert "web" in done.stdout
        assert web.run(["systemctl", "is-active", "stoker-agent"]).stdout == "active\n"


def has_ended(pid: str) -> bool:
    """Whether the process has ended, even if its parent has not asked for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


_CRASH = """
import os, signal, sys
from support.machines import Machines
with Machines.open() as machines:
    machine = machines.make("lost", booted=True)
    print(machine.pid, machines.host_address.split(".")[2], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_machines_of_a_killed_process_end_and_are_removed(machines):
    script = subprocess.run(
        [sys.executable, "-c", _CRASH],
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert script.returncode == -signal.SIGKILL, script.stderr
    pid, number = script.stdout.split()
    acquired = []
    try:
        while not acquired or acquired[-1].number < int(number):  # other processes hold numbers, too
            acquired.append(Subnet.acquire())
        assert has_ended(pid)
        assert list(acquired[-1].folder.iterdir()) == []
    finally:
        for subnet in acquired:
            subnet.release()


def test_two_sets_of_machines_do_not_meet(machines):
    with Machines.open() as others, others.make("web2") as other:
        assert others.host_address != machines.host_address
        assert other.address.rpartition(".")[0] == others.host_address.rpartition(".")[0]
