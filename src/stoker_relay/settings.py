"""The settings of one relay."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_KEY = re.compile(r"[0-9a-f-]{36}\.[0-9a-f]{64}")


class Unusable(Exception):
    """A setting or a file is wrong; the message names it and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelaySettings:
    """``centre`` is the URL of the central Stoker, ``key`` the relay's own key."""

    centre: str
    key: str
    state_dir: Path
    host: str = "127.0.0.1"
    port: int = 8005
    #: The CA of the central Stoker's certificate; None: those of the system.
    ca_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    #: Serve other machines without TLS.
    insecure_http: bool = False
    #: Maximum bytes of requests that wait for the central Stoker.
    spool_bytes: int = 1024 * 1024 * 1024
    #: Days of the relay's running time after which a request that waits is deleted.
    spool_days: int = 30
    #: The token that admits other machines to /metrics; empty: none.
    metrics_token: str = ""
    #: Agents in one shared poll. Each shared poll holds one connection to the central Stoker.
    batch: int = 500
    #: Maximum connections to the central Stoker besides those of shared polls.
    connections: int = 16


def check_settings(settings: RelaySettings) -> None:
    """Raise Unusable if the relay cannot run with these settings."""
    try:
        parts = urlsplit(settings.centre)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise Unusable(f"--centre {settings.centre!r} is not the URL of a Stoker, such as https://stoker.example:8004")
    if not _KEY.fullmatch(settings.key):
        raise Unusable("the key is not one that `stoker relay create` has printed: put it into the key file again")
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise Unusable("--tls-cert and --tls-key go together: name both files, or none")
    if not settings.tls_cert and not settings.insecure_http and settings.host not in ("127.0.0.1", "::1", "localhost"):
        raise Unusable(
            f"other machines reach {settings.host} without TLS, and agents send their keys: name --tls-cert and"
            " --tls-key, or allow it with --insecure-http"
        )
    for option, path in (("ca-file", settings.ca_file), ("tls-cert", settings.tls_cert), ("tls-key", settings.tls_key)):
        if path is not None:
            read_file(path, f"--{option}")


def read_file(path: Path, option: str) -> str:
    """Return the text of a file. Raises Unusable, with the option that names the file."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is no text"
        raise Unusable(f"cannot read {path} (named by {option}): {reason}") from None
