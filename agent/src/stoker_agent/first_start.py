"""
The enrollment at the first start of a machine: from the environment of a container, or from a file in an image.

The file ``enrollment.json`` beside ``agent.json`` holds ``{"url": …, "token": …, "ca_file": …?, "proxy": …?}``. An
image contains it in place of an enrollment, because the machines of the image would share the enrollment and its key.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import NamedTuple, Optional

from stoker_agent.config import Config, Paths, Unusable, find
from stoker_agent.enroll import enroll
from stoker_agent.files import remove_tree, write_json
from stoker_agent.machine import is_copy

_log = logging.getLogger("stoker-agent")


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
    path = _file(paths)
    try:
        data = json.loads(path.read_text())
        return Invitation(data["url"], data["token"], data.get("ca_file"), data.get("proxy"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unusable(f"cannot read {path}: {type(error).__name__}: {error}") from None


def _file(paths: Paths) -> Path:
    return paths.config.with_name("enrollment.json")


def _forget_runs(paths: Paths) -> None:
    """Remove the runs of the other machine, so that this one does not report them."""
    remove_tree(paths.state / "runs")
    for name in ("past-runs", "accepted-document.json"):
        (paths.state / name).unlink(missing_ok=True)
