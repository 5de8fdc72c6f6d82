"""
Delivered hooks: hooks that the option ``hook`` of a config names, which the agent fetches, verifies and keeps.

A hook is kept by its SHA-256 in a bounded directory. The file ``hook-digests`` beside ``agent.json`` pins the hooks of
this machine: if the file exists, the agent runs only delivered hooks whose digests are in it, whatever Stoker says.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional

from stoker_agent.backoff import Backoff
from stoker_agent.config import Config, Paths
from stoker_agent.files import write
from stoker_agent.hook_contract import HookError, append_progress
from stoker_agent.programs import group_name, inputs, option, parse_seconds
from stoker_agent.termination import Control
from stoker_agent.web import Channel, Limit, Refused, Unreachable, Web

#: Largest hook in bytes, and the number of hooks that the agent keeps.
LONGEST = 16 * 1024 * 1024
MOST = 32
#: Time limit of one request, and of all attempts if the run has no timeout.
_REQUEST_SECONDS, _FETCH_SECONDS = 60.0, 300.0
_LONGEST_PAUSE = 15.0
_DIGEST = re.compile("[0-9a-f]{64}")


class Hook(NamedTuple):
    """A hook to fetch. A URL without a host is Stoker's."""

    url: str
    sha256: str


def provide(
    entry: Mapping[str, Any],
    folder: Path,
    control: Control,
    paths: Paths,
    config: Optional[Config],
    ca_file: Optional[str],
) -> Optional[Path]:
    """
    Return a directory in the run's ``folder`` with the entry's hook, or None if the entry uses an installed hook.

    Fetches the hook if it is not there yet, until ``control`` ends the run. ``ca_file`` verifies the servers of URLs.
    Raises HookError or OSError.
    """
    hook = _parse(entry)
    if hook is None:
        return None
    _check_pins(hook, paths.hook_digests)
    path = paths.delivered_hooks / hook.sha256
    if not _has_digest(path, hook.sha256):
        if hook.url.startswith("/") and config is None:
            raise HookError(f"The hook {hook.url} is stored in Stoker, and this machine is not enrolled")
        client = Channel(config) if hook.url.startswith("/") and config else Web(ca_file)
        content = _fetch(client, hook, entry, folder, control)
        if content is None:
            return None
        _keep(path, content)
    os.utime(str(path))
    return _link(path, entry, folder)


def _check_pins(hook: Hook, pins: Path) -> None:
    """Raise HookError if this machine does not permit the hook."""
    try:
        lines = pins.read_text().splitlines()
    except FileNotFoundError:
        return
    if hook.sha256 not in {line.partition("#")[0].strip().lower() for line in lines}:
        raise HookError(f"This machine does not permit the hook {hook.url}: {hook.sha256} is not in {pins}")


def _fetch(client: Web, hook: Hook, entry: Mapping[str, Any], folder: Path, control: Control) -> Optional[bytes]:
    """Fetch and verify the hook; None if the run is to stop. Raises HookError."""
    seconds = parse_seconds(inputs(entry).get("deploy_timeout")) or _FETCH_SECONDS
    until, backoff, attempt = time.monotonic() + seconds, Backoff(_LONGEST_PAUSE), 0
    progress = folder / "progress"
    while control.why is None:
        attempt += 1
        again = f", attempt {attempt}" if attempt > 1 else ""
        append_progress(progress, None, f"fetching the hook {hook.url}{again}")
        try:
            return _fetch_once(client, hook, min(_REQUEST_SECONDS, max(1.0, until - time.monotonic())))
        except Refused as error:
            raise HookError(f"The hook {hook.url} cannot be fetched: {error}") from None
        except Unreachable as error:
            problem, pause = str(error), backoff.next(error.retry_after)
        if time.monotonic() + pause >= until:
            raise HookError(f"The hook {hook.url} cannot be fetched: {problem} ({attempt} attempts, {seconds:g} s)")
        append_progress(progress, None, f"the hook {hook.url} cannot be fetched: {problem}")
        control.wait(pause)
    return None


def _fetch_once(client: Web, hook: Hook, seconds: float) -> bytes:
    """Raises Unreachable if another attempt may succeed, Refused or HookError otherwise."""
    try:
        answer = client.call("GET", hook.url, seconds=seconds, limit=Limit("the hook", LONGEST, is_timed=True))
    finally:
        client.close()
    if answer.status != 200:
        raise Refused(f"the server answered {answer.summary()}")
    digest = hashlib.sha256(answer.body).hexdigest()
    if digest != hook.sha256:
        raise HookError(f"The hook {hook.url} has the SHA-256 {digest}, not {hook.sha256}: it does not run")
    return answer.body


def _keep(path: Path, content: bytes) -> None:
    """Store a hook, and remove those that were not used for the longest time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write(path, content, 0o500)
    kept = sorted(path.parent.glob("[0-9a-f]*"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in kept[MOST:]:
        if file != path:
            file.unlink()


def _parse(entry: Mapping[str, Any]) -> Optional[Hook]:
    """Return the hook of an entry, or None. Raises HookError."""
    value = option(entry, "hook")
    if value is None:
        return None
    url = value.get("url") if isinstance(value, dict) else None
    sha256 = str(value.get("sha256") if isinstance(value, dict) else "").lower()
    if not isinstance(url, str) or not _DIGEST.fullmatch(sha256):
        raise HookError(f"The option hook needs a URL and a SHA-256, not {json.dumps(value)[:200]}")
    return Hook(url, sha256)


def _has_digest(path: Path, sha256: str) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == sha256
    except OSError:
        return False


def _link(path: Path, entry: Mapping[str, Any], folder: Path) -> Path:
    """Return a directory with the hook under the name of the entry's group. The hook stays for the whole run."""
    directory = folder / "delivered"
    directory.mkdir(mode=0o700, exist_ok=True)
    target = directory / group_name(entry)
    if target.exists():
        target.unlink()
    os.link(str(path), str(target))
    return directory
