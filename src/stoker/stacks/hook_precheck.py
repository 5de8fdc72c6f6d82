"""Checks before a stack is created or updated whether servers have the hooks, and the programs, of their configs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from stoker.deployments.hook_check import describe_missing_hook, describe_missing_program, needed_groups
from stoker.model.config import COMPONENT
from stoker.model.errors import StackValidationFailed
from stoker.model.server import Server
from stoker.model.stack import Stack
from stoker.stacks.policy_precheck import PlannedDeployment
from stoker.store import configs, server_facts, servers
from stoker.store.tx import Tx

#: The first action of a deployment, and that of an update.
_CREATE, _UPDATE = "CREATE", "UPDATE"
_EVERY_ACTION = (_CREATE, _UPDATE, "DELETE", "SUSPEND", "RESUME")


def refuse_missing_hooks(tx: Tx, planned: Iterable[PlannedDeployment], project_id: str) -> None:
    """Raise StackValidationFailed, with the place, for a deployment whose server certainly lacks the hook."""
    for place, server, groups in _needs(tx, planned, project_id):
        if reason := describe_missing_hook(server, groups, project_id):
            raise StackValidationFailed(f"{place}: {reason}")


def refuse_changed_hooks(tx: Tx, planned: Iterable[PlannedDeployment], stack: Stack) -> None:
    """
    Raise StackValidationFailed, with the place, for an existing deployment whose new config needs a missing hook.

    A group that the stack's deployments on the server have already is no change, and refuses no update.
    """
    to_run = (
        replace(deployment, actions=(_UPDATE,))
        for deployment in planned
        if deployment.group == COMPONENT or not deployment.actions or _UPDATE in deployment.actions
    )
    for place, server, groups in _needs(tx, to_run, stack.project_id):
        if not describe_missing_hook(server, groups, stack.project_id):
            continue
        new = groups - _present_groups(tx, stack, server.id)
        if reason := describe_missing_hook(server, new, stack.project_id):
            raise StackValidationFailed(f"{place}: {reason}")


def list_missing_programs(tx: Tx, planned: Iterable[PlannedDeployment], project_id: str) -> list[str]:
    """Return a warning for each deployment whose server lacks the program that its hook calls."""
    warnings = [
        f"{place}: {reason}"
        for place, server, groups in _needs(tx, planned, project_id)
        if server.project_id == project_id
        and (reason := describe_missing_program(server, server_facts.load_facts(tx, server.id), groups))
    ]
    return list(dict.fromkeys(warnings))


def _needs(
    tx: Tx, planned: Iterable[PlannedDeployment], project_id: str
) -> Iterator[tuple[str, Server, frozenset[str]]]:
    """Yield (place, server, groups whose hooks the server needs) of deployments to known servers."""
    by_key: dict[tuple[str | None, str | None], Server | None] = {}
    for deployment in planned:
        group, config, options = deployment.group, deployment.config, deployment.options
        if deployment.config_id is not None:
            stored = configs.find(tx, deployment.config_id)
            if stored is None or stored.project_id != project_id:
                continue
            group, config, options = stored.group, stored.config, stored.options
        groups = needed_groups(group, config, options, deployment.actions or (_CREATE,))
        if not groups:
            continue
        key = (deployment.server_id, deployment.server_name)
        if key not in by_key:
            by_key[key] = _find_server(tx, deployment, project_id)
        server = by_key[key]
        if server is not None:
            yield deployment.place, server, groups


def _find_server(tx: Tx, deployment: PlannedDeployment, project_id: str) -> Server | None:
    if deployment.server_id is not None:
        return servers.find(tx, servers.resolve_id(tx, project_id, deployment.server_id))
    return servers.find_enrolled(tx, deployment.server_name, project_id) if deployment.server_name else None


def _present_groups(tx: Tx, stack: Stack, server_id: str) -> frozenset[str]:
    """Return the groups whose hooks the stack's deployments on the server need already."""
    present = configs.of_tree(tx, stack.root_id, server_id)
    needs = (needed_groups(config.group, config.config, config.options, _EVERY_ACTION) for config in present)
    return frozenset().union(*needs)
