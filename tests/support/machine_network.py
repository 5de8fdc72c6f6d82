"""Networks of test machines: one subnet with a bridge for each test process."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from support import machine_groups

#: Subnets are 10.203.N.0/24. Zero is left to machines that a developer makes by hand.
_NUMBERS = range(1, 250)
_MACHINES = range(2, 254)


def run_ip(*words: str, check: bool = True) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Subnet:
    """
    A subnet that one process owns as long as it lives.

    The lock of the subnet's folder ends with the process. The next owner of the number therefore removes what a killed
    process left.
    """

    def __init__(self, number: int, folder: Path, lock: int) -> None:
        self.number, self.folder, self._lock = number, folder, lock
        self.bridge = f"stoker{number}"
        self.host_address = f"10.203.{number}.1"
        self._next = iter(_MACHINES)

    @classmethod
    def acquire(cls) -> Subnet:
        """Take a free number. End the machines of an earlier owner that was killed."""
        top = Path(tempfile.gettempdir()) / "stoker-test-machines"
        top.mkdir(mode=0o700, exist_ok=True)
        for number in _NUMBERS:
            lock = os.open(top / f"{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            subnet = cls(number, top / str(number), lock)
            machine_groups.sweep(f"{number}-")
            subnet._disconnect()
            subnet.folder.mkdir()
            # Without a hardware address of its own, a bridge takes the lowest of its ports', and machines lose the host
            # when another one comes or goes.
            run_ip("link", "add", subnet.bridge, "address", f"02:00:0a:cb:{number:02x}:01", "type", "bridge")
            run_ip("address", "add", f"{subnet.host_address}/24", "dev", subnet.bridge)
            run_ip("link", "set", subnet.bridge, "up")
            return subnet
        raise AssertionError(f"all subnets of {top} are in use")

    def new_address(self) -> str:
        return f"10.203.{self.number}.{next(self._next)}"

    def connect(self, address: str, process: int) -> None:
        """Give the process's network namespace an interface ``eth0`` that is connected to the bridge."""
        outer = self.interface(address)
        run_ip("link", "delete", outer, check=False)
        run_ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", str(process))
        run_ip("link", "set", outer, "master", self.bridge, "up")

    def interface(self, address: str) -> str:
        """Return the host's end of a machine's cable."""
        return f"{self.bridge}-{address.rpartition('.')[2]}"

    def release(self) -> None:
        """Remove the network and the folder of machines that have ended, and free the number."""
        self._disconnect()
        os.close(self._lock)

    def _disconnect(self) -> None:
        run_ip("link", "delete", self.bridge, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
