"""
Runs the agent as a service of systemd, or as a process in the background.

On a machine without systemd, the command of the process is for the machine's own service manager. An agent with a root
of its own always runs in the background, because services need the system's root.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional, Sequence

from stoker_agent.config import Paths, Unusable
from stoker_agent.files import write
from stoker_agent.self_update import find_program

_UNIT_TEXT = """\
[Unit]
Description=Stoker agent
After=network-online.target
Wants=network-online.target
# A machine whose agent systemd no longer starts would be out of reach.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
Restart=always
# An agent that cannot start is started again ever more rarely. systemd before 254 ignores the last two lines.
RestartSec=2
RestartSteps=10
RestartMaxDelaySec=60
# The agent sends a sign of life every minute, if it does not hang.
WatchdogSec=300
# What a script started goes on without the agent.
KillMode=process
# A run that needs too much memory must not end the agent.
OOMPolicy=continue
{account}\
# As many runs side by side as a policy allows, with what they start.
LimitNOFILE=65536
TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""

#: A run of root may change anything, so the unit of root restricts nothing: each namespace, filter of system calls or
#: missing capability would also apply to what runs do (docs/agent-operation.md).
_ACCOUNT = """\
User={user}
Group={user}
"""
_RESTRICTIONS = """\
NoNewPrivileges=true
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths=/etc/stoker-agent /opt/stoker-agent /var/lib/stoker-agent /var/log/stoker-agent
PrivateTmp=true
PrivateDevices=true
ProtectKernelTunables=true
ProtectKernelModules=true
ProtectKernelLogs=true
ProtectControlGroups=true
ProtectClock=true
ProtectHostname=true
RestrictSUIDSGID=true
RestrictRealtime=true
LockPersonality=true
"""
UNIT = Path("/etc/systemd/system/stoker-agent.service")
#: Where the install script writes the program, without a root.
PROGRAM = Path("/opt/stoker-agent/stoker-agent.pyz")
#: The link through which users call the agent by its name.
LINK = Path("/usr/local/bin/stoker-agent")
#: What the agent's own user may run as root.
SUDOERS = Path("/etc/sudoers.d/stoker-agent")
ROOT = "root"
_NAME = "stoker-agent"
#: Seconds that a stopping agent has: it gives its runs ten.
_STOP_SECONDS = 20.0
_START_SECONDS = 10.0


def systemd_unit(command: Sequence[str], user: Optional[str] = None, *, has_sudo: bool = False) -> str:
    """
    Return the unit that runs ``command``, as root or as ``user``.

    The unit of a user without sudo is restricted further: what its runs cannot do in any case, systemd forbids.
    """
    account = "" if user is None else _ACCOUNT.format(user=user) + ("" if has_sudo else _RESTRICTIONS)
    return _UNIT_TEXT.format(command=" ".join(command), account=account)


def run_command(root: Optional[str]) -> List[str]:
    """Return the command that runs the agent."""
    program = find_program()
    own = ["-m", "stoker_agent"] if program is None else [str(program)]
    return [sys.executable, *own, "run", *(["--root", str(Path(root).absolute())] if root else [])]


def has_systemd(root: Optional[str]) -> bool:
    """Return whether systemd can run the agent: only without a root of its own."""
    return not root and Path("/run/systemd/system").is_dir()


def install(paths: Paths, root: Optional[str], *, user: Optional[str] = None, has_sudo: bool = False) -> str:
    """
    Start the agent, now and at every boot, in place of an agent that runs already. Repeatable. Returns how it runs.

    With ``user``, the agent runs as this user, which may be ROOT; an existing unit of systemd keeps its user otherwise.

    Raises Unusable if the service manager refuses.
    """
    command = run_command(root)
    if not root:
        _link()
    if not has_systemd(root):
        if user not in (None, ROOT):
            raise Unusable(f"an own user needs systemd; here, run {' '.join(command)} as user {user} by other means")
        stop_process(paths)
        _start_process(paths, command)
        return f"none: a process in the background; at boot, start it with: {' '.join(command)}"
    if user is not None or find_user() is None:
        own = None if user == ROOT else user
        write(UNIT, systemd_unit(command, own, has_sudo=has_sudo).encode(), 0o644)
    for words in (["daemon-reload"], ["enable", f"{_NAME}.service"], ["restart", f"{_NAME}.service"]):
        _call("systemctl", "--quiet", *words)
    return f"{UNIT} (systemd), started at boot"


def find_user() -> Optional[str]:
    """Return the user that systemd runs the agent as, or None if that is root or systemd does not run it."""
    lines = UNIT.read_text().splitlines() if UNIT.exists() else []
    return next((line[len("User=") :] for line in lines if line.startswith("User=")), None)


def remove(paths: Paths, root: Optional[str]) -> List[Path]:
    """
    Stop the agent and remove its service. Returns the removed files. Repeatable, also after a kill at any point.

    The file that starts the service is removed after everything that only it leads to. LINK stays.
    """
    removed: List[Path] = [] if root else delete(SUDOERS)
    if not root and UNIT.parent.is_dir():
        is_running = has_systemd(root)
        if is_running and UNIT.exists():
            _call("systemctl", "--quiet", "disable", "--now", f"{_NAME}.service")
        shutil.rmtree(f"{UNIT}.d", ignore_errors=True)
        removed += delete(*sorted(UNIT.parent.glob(f"*.wants/{_NAME}.service")), UNIT)
        if is_running:
            _call("systemctl", "daemon-reload")
    stop_process(paths)
    return removed


def find_process(paths: Paths) -> Optional[int]:
    """Return the process id of the running agent, 0 if it is not known, or None if no agent runs."""
    try:
        handle = os.open(str(paths.state / "lock"), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        text = os.read(handle, 32).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(handle)
    return None


def stop_process(paths: Paths) -> None:
    """End the running agent, if there is one, and wait for its end. Raises Unusable if it does not end."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        pid = find_process(paths)
        if pid is None:
            return
        if not pid:
            raise Unusable(f"an agent runs for {paths.state} and its process is not known: end it, then run this again")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sign)
        if _wait_until(paths, runs=False, seconds=_STOP_SECONDS):
            return
    raise Unusable(f"the agent (process {pid}) does not end")


def _wait_until(paths: Paths, *, runs: bool, seconds: float) -> bool:
    """Wait until the agent runs, or does not. Return whether that is so in time."""
    deadline = time.monotonic() + seconds
    while (find_process(paths) is not None) != runs:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _start_process(paths: Paths, command: Sequence[str]) -> None:
    """Start the agent. Raises Unusable if it does not start."""
    nothing = subprocess.DEVNULL
    subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True, cwd="/")
    if not _wait_until(paths, runs=True, seconds=_START_SECONDS):
        raise Unusable(f"the agent does not start: see {paths.logs / 'agent.log'}")


def _link() -> None:
    """Let users call the agent by its name, unless another program has the name."""
    target = find_program()  # before the link is removed, through which this program may run
    if target is None:
        return
    with contextlib.suppress(OSError):
        if LINK.is_symlink():
            LINK.unlink()
        if LINK.parent.is_dir() and not LINK.exists():
            LINK.symlink_to(target)


def _call(*words: str) -> None:
    try:
        done = subprocess.run(words, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise Unusable(f"cannot run {words[0]}: {error.strerror}") from None
    if done.returncode:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        raise Unusable(f"`{' '.join(words)}` failed: {lines[-1] if lines else f'exit code {done.returncode}'}")


def delete(*paths: Path) -> List[Path]:
    """Remove files and directories with everything in them. Return those that were there. Raises OSError."""
    present = []
    for path in paths:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(str(path))
        elif path.exists() or path.is_symlink():
            path.unlink()
        else:
            continue
        present.append(path)
    return present
