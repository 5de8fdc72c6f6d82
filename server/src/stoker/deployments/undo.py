"""
Undo: the run that removes what a deployment made, before the deployment disappears.

The config's option ``undo`` requests it: true for hooks that can undo, or the text of a script that gets the same
inputs. The run takes everything from the deployment's own derived config, because the source config may be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.deployments.configs import SCRIPT, content_of, read_undo, source_inputs
from stoker.deployments.deadlines import read_seconds
from stoker.model.config import COMPONENT, Config
from stoker.model.deployment import UNDO, Deployment
from stoker.model.errors import Invalid
from stoker.model.trigger import Content
from stoker.store import configs, deployments, servers
from stoker.store.tx import Tx

#: The option of a config with the limit of the run that undoes, in seconds.
TIMEOUT_OPTION = "undo_timeout"
#: The limit of a run that undoes, if neither the config nor the deployment has one. A server that is lost must not
#: block a deletion for ever.
_DEFAULT_SECONDS = 600.0
#: What to do about an undo that fails.
REMEDY = (
    "delete again to retry; to give up, remove the deployment (`stoker deployment delete --force`) or abandon the stack"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """What undoes a deployment."""

    content: Content
    input_values: Mapping[str, Any]
    #: UNDO, or None for a script of its own, which any agent can run.
    mode: str | None
    timeout: float


def find_undo(tx: Tx, deployment: Deployment, timeout: float | None = None) -> Undo | None:
    """
    Return what undoes the deployment within its own ``timeout``, or None if nothing does or no run may have begun.
    Raises Invalid if the server's agent cannot undo.
    """
    config = configs.find(tx, deployment.config_id)
    server = servers.find(tx, deployment.server_id)
    option = _option(config) if config is not None and deployment.signal_transport != "NO_SIGNAL" else None
    if (
        config is None
        or server is None
        or option is None
        or not deployments.may_have_begun(tx, deployment.id, any_run=True)
    ):
        return None
    if option is True and UNDO not in server.modes:
        raise Invalid(
            f"The agent of server {server.name} does not know how to undo: upgrade it, or use the action DELETE"
        )
    inputs, values = source_inputs(config.inputs)
    content = replace(content_of(config), inputs=inputs)
    if option is not True:
        content = replace(content, group=SCRIPT, config=option)
    seconds = read_seconds(config.options.get(TIMEOUT_OPTION)) or timeout or _DEFAULT_SECONDS
    return Undo(content=content, input_values=values, mode=UNDO if option is True else None, timeout=seconds)


def requests_undo(content: Content) -> bool:
    """Return whether a deployment of the content is undone at its removal."""
    return content.group != COMPONENT and read_undo(content.options) is not None


def describe_failure(tx: Tx, deployment: Deployment) -> str:
    """Return why a deletion has failed: the reason of the deployment, with the remedy if its run was an undo."""
    reason = deployment.status_reason or ""
    config = configs.find(tx, deployment.config_id)
    return reason if config is None or _option(config) is None else f"{reason}: {REMEDY}"


def _option(config: Config) -> str | bool | None:
    """Return True, the text of a script, or None: a component has configs for DELETE instead."""
    return None if config.group == COMPONENT else read_undo(config.options)
