"""Where files are: names as users and templates write them, URLs as the one unambiguous form, and their contents."""

import base64
import os
import urllib.request
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from stoker_client.errors import BadInput

TIMEOUT = 60


def locate(name: str, base: str = "") -> str:
    """The absolute URL of ``name`` seen from the document at ``base`` (from the working directory without one)."""
    if urlsplit(name).scheme in ("file", "http", "https"):
        return name
    if is_web(base):
        return urljoin(base, name)
    here = _path(base).parent if base else Path.cwd()
    # Not resolve(): what a link's document names lies beside the link, as in heatclient.
    return Path(os.path.normpath(here / name)).as_uri()


def folder(name: str, base: str) -> str:
    """A URL to start from for what lies in the folder ``name``, itself seen from ``base``."""
    return locate(name, base).rstrip("/") + "/_"


def is_web(url: str) -> bool:
    """Whether ``url`` is fetched over the network."""
    return urlsplit(url).scheme in ("http", "https")


def read(url: str, asker: str) -> str:
    """The content at ``url``, which ``asker`` names: text, or base64 of what is not text, as heatclient sends it."""
    raw = _fetch(url, asker) if is_web(url) else _open(url, asker)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


def _open(url: str, asker: str) -> bytes:
    path = _path(url)
    try:
        return path.read_bytes()
    except OSError as problem:
        raise BadInput(f"cannot read {path} (named by {asker}): {problem.strerror}") from problem


def _fetch(url: str, asker: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 (only http and https come here)
            return bytes(answer.read())
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise BadInput(f"cannot fetch {url} (named by {asker}): {reason}") from problem


def _path(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))
