"""
Install Stoker's agent on this machine and enroll it with the token on standard input.

Stoker fills in the three values below. The command that `stoker server enroll` prints verifies this text first. With
STOKER_ROOT=DIR in the environment, everything is installed below that directory, without root and systemd.
"""

import hashlib
import os
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import List, NoReturn, Optional

#: Stoker's URL.
URL = "@URL@"
#: The SHA-256 of the agent program that this script installs.
PROGRAM_SHA256 = "@PROGRAM_SHA256@"
#: Certificates (PEM) of the CA that verifies URL; empty if the system trusts that CA.
CA = "@CA@"

_UNIT = """\
[Unit]
Description=Stoker agent
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={command}
Restart=always
RestartSec=2
# What a script started goes on without the agent.
KillMode=process
# As many runs side by side as a policy allows, with what they start.
LimitNOFILE=65536
TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""
_UNIT_PATH = Path("/etc/systemd/system/stoker-agent.service")


def main() -> None:
    """Install, enroll and start the agent. On any failure, print one line and exit with a nonzero code."""
    root = os.environ.get("STOKER_ROOT")
    if sys.version_info < (3, 8):
        fail("python3 must be 3.8 or newer")
    if not root and os.geteuid() != 0:
        fail("run this as root (with sudo), or set STOKER_ROOT to a directory of your own")
    token = sys.stdin.readline().strip()
    if not token:
        fail("the enrollment token is missing: give it on standard input")
    program = Path(root or "/opt/stoker-agent").absolute() / "stoker-agent.pyz"
    ca_file = (Path(root).absolute() / "etc" if root else Path("/etc/stoker-agent")) / "ca.pem"
    try:
        if CA:
            write(ca_file, CA.encode(), 0o600)
        write(program, download(), 0o755)
    except OSError as error:
        fail(str(error))
    agent = [sys.executable, str(program)]
    place = ["--root", root] if root else []
    trust = ["--ca-file", str(ca_file)] if CA else []
    enrolled = subprocess.run([*agent, "enroll", "--url", URL, *trust, *place], input=token.encode(), check=False)
    if enrolled.returncode:
        sys.exit(enrolled.returncode)
    start([*agent, "run", *place], root)


def download() -> bytes:
    """Return the agent program after a check of its SHA-256."""
    trust = ssl.create_default_context(cadata=CA or None)
    address = URL + "/agent/v1/stoker-agent.pyz"
    with urllib.request.urlopen(address, timeout=60, context=trust) as answer:  # noqa: S310 — the URL is Stoker's
        content = bytes(answer.read())
    if hashlib.sha256(content).hexdigest() != PROGRAM_SHA256:
        fail("the agent's program is not the one that this script was made for: run `stoker server enroll` again")
    return content


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace the file atomically. Create a missing directory with the permissions of the file."""
    path.parent.mkdir(mode=mode | 0o100, parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(content)
    fresh.chmod(mode)
    fresh.replace(path)


def start(command: List[str], root: Optional[str]) -> None:
    """Start the agent as a systemd service, or in the background without systemd or with STOKER_ROOT."""
    if not root and Path("/run/systemd/system").is_dir():
        write(_UNIT_PATH, _UNIT.format(command=" ".join(command)).encode(), 0o644)
        for words in (["daemon-reload"], ["enable", "stoker-agent.service"], ["restart", "stoker-agent.service"]):
            done = subprocess.run(["systemctl", *words], check=False)
            if done.returncode:
                sys.exit(done.returncode)
        print("stoker-agent runs as a service: systemctl status stoker-agent")
        return
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    print(f"stoker-agent runs in the background as process {process.pid}; start it at boot with: {' '.join(command)}")


def fail(message: str) -> NoReturn:
    """Print one line and exit with a nonzero code."""
    sys.exit("stoker-agent: " + message)


if __name__ == "__main__":
    main()
