"""
Install Stoker's agent on this machine and enroll it with the token on standard input.

Stoker fills in the three values below. The command that `stoker server enroll` prints verifies this text first. With
STOKER_ROOT=DIR in the environment, everything is installed below that directory, without root and without a service.
Without a token, an enrolled machine keeps its enrollment and gets the program only.
"""

import hashlib
import os
import shutil
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
_LONGEST_PROGRAM = 16 * 1024 * 1024


class Places:
    """The files and directories of the installation, as ``stoker_agent.config.Paths`` has them."""

    def __init__(self, root: Optional[str]) -> None:
        top = Path(root or "/").absolute()
        self.program = top / "stoker-agent.pyz" if root else Path("/opt/stoker-agent/stoker-agent.pyz")
        self.etc = top / "etc" if root else Path("/etc/stoker-agent")
        self.state = top / "state" if root else Path("/var/lib/stoker-agent")
        self.logs = top / "logs" if root else Path("/var/log/stoker-agent")
        self.ca_file = self.etc / "ca.pem"
        self.config = self.etc / "agent.json"
        #: The program before the enrollment has succeeded.
        self.fresh = self.program.with_name(".stoker-agent.pyz.new")
        #: What a failure leaves as it was: directories that did not exist, and the earlier certificates.
        self._new = [path for path in (top, self.program.parent, self.etc, self.state, self.logs) if not path.exists()]
        self._hooks = top / "hooks" if root and not (top / "hooks").exists() else None
        self._ca = self.ca_file.read_bytes() if self.ca_file.exists() else None

    def undo(self) -> None:
        """Remove what this script wrote. An earlier installation stays and runs on."""
        if self.fresh.exists():
            self.fresh.unlink()
        if self._ca is not None:
            write(self.ca_file, self._ca, 0o600)
        elif CA and self.ca_file.exists():
            self.ca_file.unlink()
        for folder in (*self._new, self._hooks):
            if folder is not None:
                shutil.rmtree(str(folder), ignore_errors=True)


def main() -> None:
    """Install, enroll and start the agent. On any failure, print one line and exit with a nonzero code."""
    root = os.environ.get("STOKER_ROOT")
    if sys.version_info < (3, 8):
        fail("python3 must be 3.8 or newer")
    if not root and os.geteuid() != 0:
        fail("this needs root and there is no sudo: paste the line as root, or set STOKER_ROOT to your own directory")
    token = sys.stdin.readline().strip()
    places = Places(root)
    if not token and not places.config.exists():
        fail("the enrollment token is missing: give it on standard input")
    was_installed = places.program.exists()
    try:
        install(places, ["--root", root] if root else [], token)
    except BaseException as error:
        places.undo()
        if isinstance(error, OSError):
            fail(str(error))
        raise
    report(places, ["--root", root] if root else [], was_installed)


def install(places: Places, root: List[str], token: str) -> None:
    """Write the program, enroll with it, and replace the earlier program last."""
    if CA:
        write(places.ca_file, CA.encode(), 0o600)
    write(places.fresh, download(), 0o755)
    if token:
        trust = ["--ca-file", str(places.ca_file)] if CA else []
        run([sys.executable, str(places.fresh), "enroll", "--url", URL, *trust, *root], token)
    places.fresh.replace(places.program)


def report(places: Places, root: List[str], was_installed: bool) -> None:
    """Start the agent, and print what was done and how to go on."""
    agent = [sys.executable, str(places.program)]
    sys.stdout.flush()
    if subprocess.run([*agent, "install", *root], check=False).returncode:
        fail("the agent is enrolled but does not run: remove the cause, then paste the line again")
    command = " ".join([str(places.program), "{}", *root])
    if not root and Path("/usr/local/bin/stoker-agent").exists():
        command = "stoker-agent {}"
    print(f"program   {places.program} ({'replaced' if was_installed else 'new'})")
    print(f"key       {places.config}")
    print(f"state     {places.state}")
    print(f"log       {places.logs / 'agent.log'}")
    print(f"status    {command.format('status')}")
    print(f"remove    {command.format('leave')}")


def download() -> bytes:
    """Return the agent program after a check of its SHA-256."""
    trust = ssl.create_default_context(cadata=CA or None)
    address = URL + "/agent/v1/stoker-agent.pyz"
    with urllib.request.urlopen(address, timeout=60, context=trust) as answer:  # noqa: S310 — the URL is Stoker's
        content = bytes(answer.read(_LONGEST_PROGRAM + 1))
    if len(content) > _LONGEST_PROGRAM:
        fail(f"the agent's program at {URL} has more than {_LONGEST_PROGRAM} bytes")
    if hashlib.sha256(content).hexdigest() != PROGRAM_SHA256:
        fail("the agent's program is not the one that this script was made for: run `stoker server enroll` again")
    return content


def run(command: List[str], text: str) -> None:
    """Run a program with this input; exit with its code if it fails."""
    sys.stdout.flush()
    done = subprocess.run(command, input=text.encode(), check=False)
    if done.returncode:
        sys.exit(done.returncode)


def write(path: Path, content: bytes, mode: int) -> None:
    """Replace the file atomically. Create a missing directory with the permissions of the file."""
    path.parent.mkdir(mode=mode | 0o100, parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(content)
    fresh.chmod(mode)
    fresh.replace(path)


def fail(message: str) -> NoReturn:
    """Print one line and exit with a nonzero code."""
    sys.exit("stoker-agent: " + message)


if __name__ == "__main__":
    main()
