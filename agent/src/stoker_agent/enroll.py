"""Exchanges an enrollment token for this server's key."""

from __future__ import annotations

import getpass
import logging
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any, Mapping

from stoker_agent import __version__, proxy
from stoker_agent.backoff import Backoff
from stoker_agent.channel import call_once
from stoker_agent.config import Config, Paths, Unusable, keep, read
from stoker_agent.machine import cloud_id, identity
from stoker_agent.programs import available
from stoker_agent.web import Answer, Unreachable

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
        **identity(paths.state)._asdict(),
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
