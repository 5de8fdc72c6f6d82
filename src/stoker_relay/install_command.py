"""Install a relay as a service of systemd on this machine."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from stoker_relay.options import relay_options, to_settings
from stoker_relay.settings import RelaySettings, Unusable, check_settings

_NAME = "stoker-relay"
_KEY, _TOKEN = "etc/stoker-relay/key", "etc/stoker-relay/metrics-token"
_UNIT = f"etc/systemd/system/{_NAME}.service"
#: The state directory is systemd's, and the service has a user of its own that owns nothing else.
_STATE = Path("/var/lib/stoker-relay")
#: Where systemd puts the files of LoadCredential; the specifier %d needs a newer systemd.
_CREDENTIALS = "${CREDENTIALS_DIRECTORY}"
_TEXT = """\
[Unit]
Description=Stoker relay
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
DynamicUser=yes
StateDirectory=stoker-relay
StateDirectoryMode=0700
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

    Writes /etc/stoker-relay/key and the unit stoker-relay.service, and starts the service. A second call replaces both.
    """
    try:
        settings = to_settings(options, _STATE)
        check_settings(settings)
        _write(root / _KEY, f"{settings.key}\n", 0o600)
        if settings.metrics_token:
            _write(root / _TOKEN, f"{settings.metrics_token}\n", 0o600)
        _write(root / _UNIT, unit(settings), 0o644)
        if root == Path("/"):
            _start()
    except Unusable as problem:
        raise click.ClickException(str(problem)) from None
    click.echo(f"The relay is installed: {root / _UNIT}")


def unit(settings: RelaySettings) -> str:
    """Return the text of the unit. Files that only root may read reach the service as credentials."""
    words = [_program(), "relay", "run", "--centre", settings.centre, "--key-file", f"{_CREDENTIALS}/key"]
    words += ["--state-dir", str(_STATE), "--host", settings.host, "--port", str(settings.port)]
    words += ["--spool-mb", str(settings.spool_bytes // 1024 // 1024), "--spool-days", str(settings.spool_days)]
    words += ["--connections", str(settings.connections)]
    credentials = ""
    if settings.metrics_token:
        credentials = f"LoadCredential=metrics-token:/{_TOKEN}\n"
        words += ["--metrics-token-file", f"{_CREDENTIALS}/metrics-token"]
    for name, path in (("ca-file", settings.ca_file), ("tls-cert", settings.tls_cert), ("tls-key", settings.tls_key)):
        if path is not None:
            credentials += f"LoadCredential={name}:{path.absolute()}\n"
            words += [f"--{name}", f"{_CREDENTIALS}/{name}"]
    if settings.insecure_http:
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
        raise Unusable("the command `stoker` is in no directory of PATH: install Stoker's package on this machine")
    return program


def _write(path: Path, text: str, mode: int) -> None:
    """Raises Unusable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.new")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
            file.write(text)
        temporary.replace(path)
    except OSError as problem:
        raise Unusable(f"cannot write {path}: {problem.strerror}; run this command as root") from None


def _start() -> None:
    """Raises Unusable."""
    for words in (("daemon-reload",), ("enable", f"{_NAME}.service"), ("restart", f"{_NAME}.service")):
        try:
            subprocess.run(["systemctl", *words], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as problem:
            reason = problem.stderr.strip() if isinstance(problem, subprocess.CalledProcessError) else problem.strerror
            raise Unusable(f"the files are written, but systemctl {words[0]} failed: {reason}") from None
