"""Locations of files: resolves the names in templates to URLs, and reads their contents."""

import base64
import os
import re
import urllib.request
from importlib import resources
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from stoker_client.errors import BadInput

TIMEOUT = 60
#: Prefix of the names of catalog entries.
CATALOG = "catalog://"


def locate(name: str, base: str = "") -> str:
    """Return the absolute URL of ``name``, relative to the document at ``base`` or to the working directory."""
    if urlsplit(name).scheme in ("file", "http", "https") or is_catalog(name):
        return name
    if is_web(base):
        return urljoin(base, name)
    here = to_path(base).parent if base else Path.cwd()
    # Not resolve(): names in a symlinked document are relative to the link, as in heatclient.
    return Path(os.path.normpath(here / name)).as_uri()


def folder(name: str, base: str) -> str:
    """Return a base URL for names in the directory ``name``, which is relative to ``base``."""
    return locate(name, base).rstrip("/") + "/_"


def is_web(url: str) -> bool:
    """Whether ``url`` uses HTTP or HTTPS."""
    return urlsplit(url).scheme in ("http", "https")


def is_catalog(name: str) -> bool:
    """Whether ``name`` is an entry of the catalog, such as ``catalog://nginx/1``."""
    return name.startswith(CATALOG)


def find_entry(name: str) -> str | None:
    """Return the text of a catalog entry that Stoker ships, or None: the service knows the entries of users."""
    entry, _, version = name.removeprefix(CATALOG).partition("/")
    if not re.fullmatch("[a-z][a-z0-9-]*", entry) or not version.isdecimal():
        return None
    file = resources.files("stoker_catalog").joinpath("entries", entry, f"{version}.yaml")
    return file.read_text(encoding="utf-8") if file.is_file() else None


def read(url: str, asker: str) -> str:
    """
    Return the content of ``url``: text, or base64 of other data, as heatclient sends it.

    ``asker`` is the document that names the URL, for error messages.
    """
    if is_catalog(url):
        text = find_entry(url)
        if text is None:
            raise BadInput(f"Stoker ships no catalog entry {url} (named by {asker}): see `stoker catalog list`")
        return text
    raw = _fetch(url, asker) if is_web(url) else _open(url, asker)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return base64.b64encode(raw).decode()


def _open(url: str, asker: str) -> bytes:
    path = to_path(url)
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


def to_path(url: str) -> Path:
    """Return the path of a file URL."""
    return Path(unquote(urlsplit(url).path))
