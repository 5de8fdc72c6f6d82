"""
What a machine needs to install the agent: the program, the install script, and the command that runs the script.

Each part verifies the next: the command contains the SHA-256 of the script; the script contains the SHA-256 of the
program and the CA's certificates. Therefore only the command has to be transferred safely.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from stoker.model.errors import Unavailable

#: The programs that can download the install script.
Download = Literal["python3", "curl", "wget"]

_CHANGED = "the install script is not the one that this line names: run stoker server enroll again"
#: Python downloads by default, because the agent needs Python anyway. If the machine does not know the CA, TLS cannot
#: verify the download of the script; its SHA-256 does.
_PYTHON = (
    "import hashlib,ssl,sys,urllib.request as r;"
    'sys.excepthook=lambda *e:print("stoker-agent:",e[1],file=sys.stderr);'
    "c=ssl.create_default_context();{unverified}"
    "s=r.urlopen({url},timeout=60,context=c).read();"
    "hashlib.sha256(s).hexdigest()=={digest} or "
    f'sys.exit("stoker-agent: {_CHANGED}");'
    "exec(s)"
)
_UNVERIFIED = "c.check_hostname=False;c.verify_mode=ssl.CERT_NONE;"
_SHELL = (
    """p=$({proxy}{fetch} {url}) || exit; [ "$(printf '%s\\n' "$p" | sha256sum)" = '{digest}  -' ] || """
    f"""{{{{ echo 'stoker-agent: {_CHANGED}' >&2; exit 1; }}}}; $s {{proxy}}python3 -c "$p\""""
)
_FETCH = {"curl": ("curl -fsS", " -k"), "wget": ("wget -q -O -", " --no-check-certificate")}
#: A subshell, because `exit` must not end the user's shell. Root and an installation below STOKER_ROOT need no sudo; if
#: there is none, the install script states the remedy.
_LINE = (
    "echo {token} | ("
    "command -v python3 >/dev/null || { echo 'stoker-agent: install python3 (3.8 or newer) first' >&2; exit 1; }; "
    's=; [ "${STOKER_ROOT-}" ] || [ "$(id -u)" = 0 ] || s=$(command -v sudo); '
)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    Where agents reach Stoker: directly, or through a relay.

    ``ca`` has the certificates, in PEM, that verify the URL's host; None: those that the machine trusts.
    """

    url: str
    ca: str | None = None


class AgentBundle:
    """
    Builds the agent's program and its install script.

    ``ca_file``: certificates that verify ``public_url``, if the machines do not trust its CA. The agent's package is
    executed and read, never imported, because the programs share no code.
    """

    def __init__(self, public_url: str, ca_file: Path | None = None) -> None:
        self._public_url = public_url
        self._ca_file = ca_file
        self._lock = threading.Lock()
        self._program: bytes | None = None

    def program(self) -> bytes:
        """Return the agent as one executable file, built at the first call. Raises Unavailable if the build fails."""
        with self._lock:
            if self._program is None:
                self._program = _build()
        return self._program

    @cached_property
    def sha256(self) -> str:
        """The digest of the program, in hexadecimal. Raises Unavailable."""
        return hashlib.sha256(self.program()).hexdigest()

    @cached_property
    def version(self) -> str:
        """The version of the program. Raises Unavailable."""
        match = re.search(r'^__version__ = "(.+)"$', _installer().with_name("__init__.py").read_text(), re.MULTILINE)
        if match is None:
            raise Unavailable("cannot provide the agent: the package stoker_agent names no version")
        return match.group(1)

    @cached_property
    def site(self) -> Endpoint:
        """This Stoker's own address."""
        return Endpoint(self._public_url, self._ca_file.read_text() if self._ca_file else None)

    @cached_property
    def script(self) -> bytes:
        """The script that installs the program and enrolls the machine at this Stoker. Raises Unavailable."""
        return self.script_for(self.site)

    def script_for(self, endpoint: Endpoint) -> bytes:
        """Return the install script for agents that reach Stoker at ``endpoint``. Raises Unavailable."""
        values = {"@URL@": endpoint.url, "@PROGRAM_SHA256@": self.sha256, "@CA@": endpoint.ca or ""}
        text = _installer().read_text()
        for name, value in values.items():
            text = text.replace(f'"{name}"', repr(value))
        return text.encode()

    def command(
        self,
        token: str,
        download: Download = "python3",
        proxy: str | None = None,
        endpoint: Endpoint | None = None,
    ) -> str:
        """
        Return the shell command that enrolls a machine. ``download`` is the program that downloads the install script.

        ``proxy`` is the URL of the machine's HTTP proxy; the agent stores it. ``endpoint`` is that of a relay, if the
        agent reaches Stoker through one. The token appears on no process's command line. Raises Unavailable.
        """
        endpoint = endpoint or self.site
        url = f"{endpoint.url}/agent/v1/install"
        digest = hashlib.sha256(self.script_for(endpoint)).hexdigest()
        line = _LINE.replace("{token}", token)
        # sudo removes such variables, so they are set for each program.
        scheme = urlsplit(url).scheme
        variable = f"env {scheme}_proxy={shlex.quote(proxy)} " if proxy else ""
        if download != "python3":
            fetch, unverified = _FETCH[download]
            fetch += unverified if endpoint.ca else ""
            return f"{line}{_SHELL.format(fetch=fetch, url=shlex.quote(url), digest=digest, proxy=variable)})"
        code = _PYTHON.format(url=_quoted(url), digest=_quoted(digest), unverified=_UNVERIFIED if endpoint.ca else "")
        return f"{line}$s {variable}python3 -c {shlex.quote(code)})"


def _quoted(text: str) -> str:
    """Quote for Python with double quotes, because the shell quotes the whole line with single ones."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _build() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "stoker-agent.pyz")
        built = subprocess.run(
            [sys.executable, "-m", "stoker_agent", "build", str(target)], check=False, capture_output=True, text=True
        )
        if built.returncode:
            raise Unavailable(f"cannot build the agent: {built.stderr.strip()[-300:]}")
        return target.read_bytes()


def _installer() -> Path:
    spec = find_spec("stoker_agent")
    if spec is None or spec.origin is None:
        raise Unavailable("cannot provide the agent: the package stoker_agent is not installed")
    return Path(spec.origin).with_name("install.py")
