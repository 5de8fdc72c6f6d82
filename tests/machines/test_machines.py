"""What the test machines promise to the computer that runs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.machine_network import Subnet

#: sys_module, sys_rawio and sys_time, as bits.
_HOST_CAPABILITIES = 1 << 16 | 1 << 17 | 1 << 25
_CRASH = """
import os, signal, sys
from support.machines import Machines
with Machines.open() as machines:
    machine = machines.make("lost", booted=True)
    print(machine.pid, machines.host_address.split(".")[2], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_machine_cannot_change_the_clock_modules_and_hardware_of_the_host(machines):
    with machines.make("boots", booted=True) as boots, machines.make("waits") as waits:
        for machine in (boots, waits):
            for process in ("1", "self"):
                status = dict(line.split(":\t", 1) for line in machine.read(f"/proc/{process}/status").splitlines())
                for kind in ("CapBnd", "CapEff", "CapPrm"):
                    assert not int(status[kind], 16) & _HOST_CAPABILITIES, (machine.name, process, kind)


def has_ended(pid: str) -> bool:
    """Whether the process has ended, even if its parent has not asked for its exit code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def test_machines_of_a_killed_process_end_and_are_removed(machines):
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    script = subprocess.run(
        [sys.executable, "-c", _CRASH], env=environment, capture_output=True, text=True, check=False
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
