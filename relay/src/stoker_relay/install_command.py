"""Install a relay as a service of systemd on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click

from stoker.model.errors import Invalid, StokerError, Unavailable
from stoker_relay.options import PROBLEM, RelaySettings, relay_options, to_settings

_NAME = "stoker-relay"
_KEY, _TOKEN = "etc/stoker-relay/key", "etc/stoker-relay/metrics-token"
_UNIT = f"etc/systemd/system/{_NAME}.service"
#: Where systemd puts the files of LoadCredential; the specifier %d needs a newer systemd.
_CREDENTIALS = "${CREDENTIALS_DIRECTORY}"
_TEXT = """\
[Unit]
Description=Stoker relay
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={command}
DynamicUser=yes
LoadCredential=key:/etc/stoker-relay/key
{credentials}LimitNOFILE=1048576
ProtectHome=read-only
ProtectSystem=strict
PrivateDevices=yes
NoNewPrivileges=yes
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
"""


@click.command("install")
@relay_options
@click.option("--root", type=click.Path(path_type=Path), default=Path("/"), help="Write below this directory, and do"
              " not start the service.")  # fmt: skip
def install(root: Path, **options: Any) -> None:
    """Install a relay as a service of systemd on this machine.

    Writes /etc/stoker-relay/key and the unit stoker-relay.service, starts the service, and waits until the relay serves
    and reaches Stoker. A second call replaces both files.
    """
    try:
        settings = to_settings(options)
        _write(root / _KEY, f"{settings.key}\n", 0o600)
        if settings.server.metrics_token:
            _write(root / _TOKEN, f"{settings.server.metrics_token}\n", 0o600)
        _write(root / _UNIT, unit(settings), 0o644)
        if root == Path("/"):
            start()
    except StokerError as problem:
        raise click.ClickException(problem.message) from None
    click.echo(f"The relay is installed: {root / _UNIT}")


def unit(settings: RelaySettings) -> str:
    """Return the text of the unit. Files that only root may read reach the service as credentials."""
    words = [_program(), "relay", "run", "--center", settings.center, "--key-file", f"{_CREDENTIALS}/key"]
    server = settings.server
    words += ["--host", server.host, "--port", str(server.port), "--connections", str(settings.connections)]
    credentials = ""
    if server.metrics_token:
        credentials = f"LoadCredential=metrics-token:/{_TOKEN}\n"
        words += ["--metrics-token-file", f"{_CREDENTIALS}/metrics-token"]
    for name, path in (("ca-file", settings.ca_file), ("tls-cert", server.tls_cert), ("tls-key", server.tls_key)):
        if path not in (None, Path()):
            credentials += f"LoadCredential={name}:{path.absolute()}\n"
            words += [f"--{name}", f"{_CREDENTIALS}/{name}"]
    if server.insecure_http:
        words.append("--insecure-http")
    return _TEXT.format(command=" ".join(map(_quote, words)), credentials=credentials)


def _quote(word: str) -> str:
    """Quote for systemd, whose specifiers begin with a percent sign, and whose variables with a dollar sign."""
    return word if word.startswith(_CREDENTIALS) else shlex.quote(word).replace("%", "%%").replace("$", "$$")


def _program() -> str:
    """Return the path of this command."""
    beside = Path(sys.executable).with_name("stoker")
    program = str(beside) if beside.exists() else shutil.which("stoker")
    if program is None:
        raise Invalid("the command `stoker` is in no directory of PATH: install Stoker's package on this machine")
    return program


def _write(path: Path, text: str, mode: int) -> None:
    """Raises Invalid."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as problem:
        raise Invalid(f"cannot write {path}: {problem.strerror}; run this command as root") from None


def start() -> None:
    """
    Start the service. Its type is notify, so systemctl waits until the relay serves.

    Raises Unavailable if the relay does not serve, or does not reach the central Stoker, with the reason.
    """
    service = f"{_NAME}.service"
    _systemctl("daemon-reload")
    _systemctl("enable", service)
    since = f"--since=@{int(time.time())}"
    try:
        _systemctl("restart", service)
    except Unavailable as problem:
        lines = _run("journalctl", "-u", service, since, "-o", "cat", "--no-pager").stdout.splitlines()
        errors = [line.removeprefix("Error: ") for line in lines if line.startswith("Error: ")]
        raise Unavailable(
            f"the relay does not serve: {errors[-1] if errors else problem.message}; correct this, and run this command"
            f" again (all messages: journalctl -u {service})"
        ) from None
    status = _systemctl("show", "--property=StatusText", "--value", service).strip()
    if status.startswith(PROBLEM):
        raise Unavailable(f"the relay serves, but it {status}; the service tries again")


def _systemctl(*words: str) -> str:
    """Return the output. Raises Unavailable."""
    done = _run("systemctl", *words)
    if done.returncode:
        raise Unavailable(f"the files are written, but systemctl {words[0]} failed: {done.stderr.strip()}")
    return done.stdout


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, check=False, capture_output=True, text=True)
    except OSError as problem:
        return subprocess.CompletedProcess(words, 1, "", f"{words[0]}: {problem.strerror}")
