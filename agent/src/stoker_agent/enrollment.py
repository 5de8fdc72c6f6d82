"""
The enrollment of a machine: the exchange of a token for its own key, by a command or at its first start.

At the first start, the token comes from the environment of a container, or from a file in an image: the file
``enrollment.json`` beside ``agent.json`` holds ``{"url": …, "token": …, "ca_file": …?, "proxy": …?}``. An image has it
in place of an enrollment, because the machines of the image would share the enrollment and its key.
"""

from __future__ import annotations

import getpass
import logging
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional

from stoker_agent import __version__, proxy
from stoker_agent.backoff import Backoff
from stoker_agent.config import Config, Paths, Unusable, find, keep, load, read
from stoker_agent.files import remove_tree, write_json
from stoker_agent.machine import cloud_id, identity, is_copy
from stoker_agent.programs import available
from stoker_agent.web import Answer, Unreachable, call_once

#: Seconds of pauses that a busy server may ask for in total.
_PATIENCE_SECONDS = 300.0
_log = logging.getLogger("stoker-agent")


def read_token(file: str | None) -> str:
    """
    Return the token from ``file`` (``-`` for standard input), else from STOKER_TOKEN, else from standard input.

    Removes STOKER_TOKEN from the environment. Raises Unusable if the token is empty.
    """
    token = os.environ.pop("STOKER_TOKEN", "") if file is None else ""
    if not token:
        token = _input_token() if file in (None, "-") else Path(str(file)).read_text()
    if not token.strip():
        raise Unusable("the enrollment token is missing: give it on standard input, in --token-file or STOKER_TOKEN")
    return token.strip()


def _input_token() -> str:
    if sys.stdin.isatty():
        return getpass.getpass("Enrollment token: ")
    return sys.stdin.readline()


def enroll(
    paths: Paths, url: str, token: str, ca_file: str | None, proxy_url: str | None = None, no_proxy: str | None = None
) -> Config:
    """
    Enroll this server at ``url`` (POST /agent/v1/enroll), store the key and return the enrollment.

    ``proxy_url`` and ``no_proxy`` are stored, and used for the call; None uses the environment's.
    Waits up to five minutes if Stoker asks for later requests. A repetition with the same token is safe. Raises
    Unusable if Stoker is unreachable or rejects the token.
    """
    # absolute: later starts may have another working directory
    ca_file = str(Path(ca_file).absolute()) if ca_file else None
    paths.make()
    proxy.configure(proxy_url, no_proxy)
    body = {
        "token": token,
        **identity(paths.state),
        "hostname": socket.gethostname(),
        "cloud_id": cloud_id(),
        "key": _present_key(paths, url),
        "agent": {"version": __version__, "hooks": available(paths.hooks)},
    }
    try:
        answer = _send(Config(url, "", "", ca_file), body)
        if answer.status != 201:
            raise Unusable(f"cannot enroll at {url}: {_refusal(answer)}")
        answered = answer.json()
        config = Config(url, answered["server_id"], answered["key"], ca_file, answered.get("name"), proxy_url, no_proxy)
        config = config._replace(approved=answered.get("approved", True))
    except (Unreachable, ValueError, OSError) as error:
        raise Unusable(f"cannot enroll at {url}: {error}") from None
    except (KeyError, TypeError):
        raise Unusable(f"cannot enroll at {url}: that is no Stoker's answer") from None
    keep(paths.config, config)
    return config


def _present_key(paths: Paths, url: str) -> str:
    """Return the key of an earlier enrollment at this URL, with which the machine proves its identity, or \"\"."""
    try:
        present = read(paths.config)
    except Unusable:
        return ""
    return present.key if present.url == url else ""


def _send(config: Config, body: Mapping[str, Any]) -> Answer:
    """Send the request, and again after each pause that the server asks for. Raises Unreachable."""
    backoff, until = Backoff(), time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return call_once(config, "POST", "/agent/v1/enroll", body)
        except Unreachable as error:
            pause = backoff.next(error.retry_after)
            if not error.retry_after or time.monotonic() + pause > until:
                raise
            _log.warning("enrollment.postponed: %s; the next attempt is in %.0f s", error, pause)
        time.sleep(pause)


def _refusal(answer: Answer) -> str:
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered {answer.status}"


class Invitation(NamedTuple):
    """Where a machine enrolls, and with which token."""

    url: str
    token: str
    ca_file: Optional[str]
    #: The URL of the HTTP proxy to store; None uses the environment's.
    proxy: Optional[str] = None


def ensure_enrollment(paths: Paths) -> Optional[Config]:
    """
    Return the enrollment of this machine, None without one. Enroll if the machine has a token and is not enrolled.

    An enrollment that was copied from another machine is not used: two machines with one key would take each other's
    runs. Raises Unusable if there is no other, or if the enrollment fails.
    """
    invitation = read_invitation(paths)
    config = find(paths)
    if config is not None and not is_copy(paths.state):
        return config
    if invitation is None:
        if config is None:
            return None
        raise Unusable(
            f"{paths.config} was copied from another machine (its machine id or cloud id differs): enroll this machine,"
            " or, if it is the same machine, run `stoker-agent enroll --same-machine`"
        )
    if config is not None:
        _log.warning("enrollment.copied: the files are a copy of another machine's; this machine enrolls itself")
        _forget_runs(paths)
    config = enroll(paths, invitation.url.rstrip("/"), invitation.token, invitation.ca_file, invitation.proxy)
    _log.info("enrollment.done: enrolled as server %s at %s", config.name or config.server_id, config.url)
    # A token for many machines must not stay on each of them.
    _file(paths).unlink(missing_ok=True)
    return config


def keep_invitation(paths: Paths, invitation: Invitation) -> Path:
    """Write the file with which each machine of an image enrolls at its first start, and return its path."""
    paths.make()
    # The machines of the image must not share an identity.
    (paths.state / "instance").unlink(missing_ok=True)
    write_json(_file(paths), invitation._asdict())
    return _file(paths)


def read_invitation(paths: Paths) -> Optional[Invitation]:
    """Return how to enroll: from STOKER_URL and STOKER_TOKEN, else from the file. Raises Unusable."""
    url, token = os.environ.get("STOKER_URL"), os.environ.pop("STOKER_TOKEN", "")
    if url and token:
        return Invitation(url, token, os.environ.get("STOKER_CA_FILE"))
    return load(
        _file(paths), lambda data: Invitation(data["url"], data["token"], data.get("ca_file"), data.get("proxy"))
    )


def _file(paths: Paths) -> Path:
    return paths.config.with_name("enrollment.json")


def _forget_runs(paths: Paths) -> None:
    """Remove the runs of the other machine, so that this one does not report them."""
    remove_tree(paths.state / "runs")
    for name in ("past-runs", "accepted-document.json"):
        (paths.state / name).unlink(missing_ok=True)
