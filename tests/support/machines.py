"""
Test machines: a root file system, processes, host name and address of their own, and systemd as process 1 if booted.

A machine is a set of namespaces on overlayfs, so it starts within a second and shares its base with all others. Root in
a machine is root of the host without the capabilities for its clock, modules and hardware: machines protect the host
from mistakes, not from attacks. Machines reach the host and each other, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import machine_groups, waiting
from support.machine_bases import DEBIAN, Base, require_machines
from support.machine_network import Subnet

_INIT = Path(__file__).with_name("machine_init.sh")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#: Capabilities without which a machine cannot change the host's clock, kernel modules and hardware.
_LIMITS = ("setpriv", "--bounding-set", "-sys_time,-sys_module,-sys_rawio")
_NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--cgroup", "--pid")
_START_SECONDS, _RUN_SECONDS = 120, 120
#: Succeeds after the start of all units.
_IS_UP = "case $(systemctl is-system-running --wait) in running|degraded) exit 0 ;; *) exit 1 ;; esac"


class Machine:
    """One machine. As a context manager, it is removed at the end."""

    def __init__(self, name: str, subnet: Subnet, layers: Sequence[Path], booted: bool) -> None:
        self.name, self.booted = name, booted
        self.address = subnet.new_address()
        # Machines of two modules may have the same name.
        unique = f"{name}-{self.address.rpartition('.')[2]}"
        self.folder = subnet.folder / unique
        self._subnet = subnet
        self._layers = ":".join(str(layer) for layer in reversed(layers))
        self._groups = machine_groups.locate(f"{subnet.number}-{unique}")
        self._process: subprocess.Popen[bytes] | None = None
        self.pid = 0
        for part in ("upper", "work", "root"):
            (self.folder / part).mkdir(parents=True)

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    def outer_root(self) -> Path:
        """The machine's root directory as the host sees it. Its absolute links point into the host: only read there."""
        return Path(f"/proc/{self.pid}/root")

    # Power ------------------------------------------------------------------------------------------------------------

    def power_on(self) -> None:
        """Start the machine, and wait until all units are started if it boots."""
        machine_groups.create(self._groups)
        mode = "boot" if self.booted else "wait"
        init = ["sh", str(_INIT), self._layers, str(self.folder), self.name, mode, *map(str, self._groups)]
        # The machine ends with this process, also if that is killed.
        command = [*_LIMITS, "--pdeathsig", "KILL", "unshare", *_NAMESPACES, "--fork", "--kill-child", *init]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                machine_groups.run_inside(self._groups, command),
                **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log, "start_new_session": True},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._process.stdin as stdin, self._process.stdout as stdout:
            self.pid = int(stdout.readline() or 0)
            if self.pid:
                self._subnet.connect(self.address, self.pid)
                stdin.write(f"{self.address} {self._subnet.host_address}\n".encode())
                stdin.flush()
            if not stdout.readline():
                self._process.wait()
                raise AssertionError(f"{self.name} did not start:\n{self.log}")
        if self.booted:
            self._await_units()

    def _await_units(self) -> None:
        waiting.until(
            lambda: self.run(["sh", "-c", _IS_UP], check=False).returncode == 0,
            _START_SECONDS,
            lambda: f"{self.name} did not boot:\n{self.log}",
        )

    @property
    def log(self) -> str:
        """The messages of the machine's start."""
        return (self.folder / "log").read_text(errors="replace")

    def power_cut(self) -> None:
        """Kill all processes at once."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)  # the kernel ends all processes of the namespace
            self._process.wait(_START_SECONDS)
        self._process = None
        machine_groups.remove(self._groups)

    def wait_reboot(self) -> None:
        """Wait until the machine asks for a reboot, and start it again."""
        assert self._process is not None
        code = self._process.wait(_START_SECONDS)
        assert code == -signal.SIGHUP, f"it asked for no reboot: {code}"
        self.power_cut()
        self.power_on()

    def remove(self, keep: Path | None = None) -> None:
        """End the machine and delete its files. ``keep`` is a folder that receives the files that it changed."""
        self.power_cut()
        if keep is not None:
            # With owners, and with the marks of overlayfs for removed files.
            subprocess.run(["cp", "-a", f"{self.folder}/upper/.", str(keep)], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    # Commands and files -----------------------------------------------------------------------------------------------

    def run(
        self,
        command: Sequence[str],
        *,
        input: str | bytes = b"",
        check: bool = True,
        timeout: float = _RUN_SECONDS,
        environment: Mapping[str, str] | None = None,
        on_host_network: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as root of the machine. Raises AssertionError with its output if it fails, unless ``check``."""
        spaces = ["--all"] if not on_host_network else [word for word in _NAMESPACES if word != "--net"]
        variables = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": _PATH, **(environment or {})}
        words = [f"{name}={value}" for name, value in variables.items()]
        enter = ["nsenter", "--target", str(self.pid), *spaces, "--wdns=/", *_LIMITS, "env", "-i", *words, *command]
        done = subprocess.run(
            machine_groups.run_inside(self._groups, enter),
            input=input.encode() if isinstance(input, str) else input,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        result = subprocess.CompletedProcess(list(command), done.returncode, _decode(done.stdout), _decode(done.stderr))
        if check and result.returncode:
            raise AssertionError(f"{self.name}: {command}: {result.returncode}\n{result.stdout}\n{result.stderr}")
        return result

    def put(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        """Write a file. Missing directories are created."""
        script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod "$2" "$1"'
        self.run(["sh", "-c", script, "sh", path, f"{mode:o}"], input=content)

    def put_folder(self, path: str, source: Path) -> None:
        """Copy a folder of the host to ``path``."""
        archive = subprocess.run(["tar", "-C", str(source), "-c", "."], capture_output=True, check=True).stdout
        self.run(["sh", "-c", 'mkdir -p "$1" && tar -C "$1" --no-same-owner -x', "sh", path], input=archive)

    def read(self, path: str) -> str:
        return self.run(["cat", path]).stdout

    def exists(self, path: str) -> bool:
        return self.run(["test", "-e", path], check=False).returncode == 0

    def show(self, name: str, unit: str) -> str:
        """Return a property of a unit of systemd."""
        return self.run(["systemctl", "show", "--value", "--property", name, unit]).stdout.strip()

    def until(self, *command: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Wait until a command succeeds, for events without a notification."""
        done: list[subprocess.CompletedProcess[str]] = []

        def succeeds() -> bool:
            done[:] = [self.run(command, check=False)]
            return done[0].returncode == 0

        waiting.until(succeeds, seconds, lambda: f"{self.name}: {command}: {done[0].stdout}\n{done[0].stderr}")
        return done[0]

    def enroll(self, stoker: Any, *words: str) -> None:
        """Install the agent and enroll the machine as its name, by the line that ``stoker server enroll`` prints."""
        line = stoker.run("server", "enroll", self.name, *words).stdout
        self.run(["sh", "-c", line])


def _decode(output: bytes) -> str:
    return output.decode("utf-8", "replace")


class Machines:
    """The machines of one test process, on a subnet of their own."""

    def __init__(self, subnet: Subnet) -> None:
        self._subnet = subnet
        self._all: list[Machine] = []
        #: Where a server under test listens for its agents: ``served(folder, host=machines.host_address)``.
        self.host_address = subnet.host_address

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[Machines]:
        """Yield the machines of this process, and remove all of them with the context."""
        require_machines()
        machines = cls(Subnet.acquire())
        try:
            yield machines
        finally:
            for machine in machines._all:
                machine.remove()
            machines._subnet.release()

    def make(self, name: str, *, booted: bool = False, base: Base = DEBIAN, image: Path | None = None) -> Machine:
        """
        Make and start a machine. If it is ``booted``, systemd is process 1, else a process that only waits.

        The files of the folder ``image`` are in the root file system before the start. Machines may share the folder.
        """
        layers = (*base.require(), *(() if image is None else (image,)))
        machine = Machine(name, self._subnet, layers, booted)
        self._all.append(machine)
        machine.power_on()
        return machine
