"""
Which hooks a config needs, and whether a server's agent has them.

Only a certain lack counts: the server runs Stoker's agent, the agent has reported its hooks, and the config neither
delivers its hook nor has the option ``hook_required: false``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from stoker.model.config import COMPONENT, HOOK_OPTION, UNGROUPED, Config
from stoker.model.errors import Conflict
from stoker.model.server import Server
from stoker.model.trigger import Content
from stoker.store import servers
from stoker.store.tx import Tx

#: Every agent has the hooks of these groups.
EVERYWHERE = frozenset(("script",))
#: The option of a config that says whether the server must have the hook beforehand.
REQUIRED = "hook_required"
#: Programs that built-in hooks call: any of them suffices.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "ansible": ("ansible-playbook",),
    "apply-config": ("os-apply-config",),
    "cfn-init": ("cfn-init",),
    "chef": ("chef-client",),
    "docker-cmd": ("docker",),
    "docker-compose": ("docker-compose", "docker"),
    "package": ("apt-get", "dnf"),
    "puppet": ("puppet",),
    "salt": ("salt-call",),
    "service": ("systemctl",),
}
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_SHOWN = 40


def needed_groups(group: str | None, config: Any, options: Any, actions: Collection[str]) -> frozenset[str]:
    """
    Return the groups whose hooks the runs of a config, by these ``actions`` of a component, need on the server
    beforehand: none if it has no group, delivers or does not require its hook, or every agent has it.
    """
    if options is not None and not isinstance(options, Mapping):
        return frozenset()  # not known yet
    chosen = options or {}
    if chosen.get(HOOK_OPTION) is not None or chosen.get(REQUIRED) is False:
        return frozenset()
    return run_groups(group, config, actions) - EVERYWHERE


def run_groups(group: str | None, config: Any, actions: Collection[str]) -> frozenset[str]:
    """Return the groups whose hooks the runs of a config call. ``actions`` are as in ``needed_groups``."""
    if group in (None, "", UNGROUPED):
        return frozenset()
    if group != COMPONENT:
        return frozenset((str(group),))
    chosen = (part for part in list_parts(config) if any(action in part["actions"] for action in actions))
    return frozenset(part["tool"] for part in chosen if isinstance(part.get("tool"), str))


def list_parts(component: Any) -> list[Mapping[str, Any]]:
    """Return the parts of a component: maps with a list of ``actions``. Other content has none."""
    parts = component.get("configs") if isinstance(component, Mapping) else None
    listed = parts if isinstance(parts, list) else ()
    return [part for part in listed if isinstance(part, Mapping) and isinstance(part.get("actions"), list)]


def describe_missing_hook(server: Server, groups: Iterable[str], project_id: str) -> str | None:
    """
    Return why the server's agent has no hook for one of these groups, with a remedy, or None. What another project's
    server has is not disclosed.
    """
    if server.project_id != project_id or not server.has_own_agent or not server.hooks:
        return None
    # The agent looks for a file with the group's name without other characters.
    missing = sorted(group for group in groups if _OTHER.sub("", group) not in server.hooks)
    if not missing:
        return None
    hooks = ", ".join(server.hooks[:_SHOWN])
    return (
        f"server {server.name!r} has no hook for the group {missing[0]!r:.100} (it has {hooks}): install the hook"
        f" there, let the config deliver it (option {HOOK_OPTION}), or set the config's option {REQUIRED} to false if"
        " it is installed before the run"
    )


def refuse_missing_hook(tx: Tx, content: Content | Config, project_id: str, server_id: str, action: str | None) -> None:
    """Raise Conflict if the project's server certainly lacks the hook for a run of the content."""
    groups = needed_groups(content.group, content.config, content.options, (action or "CREATE",))
    server = servers.find(tx, server_id) if groups else None
    if server is not None and (reason := describe_missing_hook(server, groups, project_id)):
        raise Conflict(f"The {reason}.")


def describe_missing_program(server: Server, facts: Mapping[str, Any], groups: Iterable[str]) -> str | None:
    """Return which program a built-in hook would miss on the server according to its facts, or None."""
    tools = facts.get("tools")
    if not isinstance(tools, Mapping):
        return None
    for group in sorted(groups):
        programs = PROGRAMS.get(group, ())
        if programs and not any(program in tools for program in programs):
            return f"server {server.name!r} has no {' or '.join(programs)}, which the hook of the group {group!r} calls"
    return None
