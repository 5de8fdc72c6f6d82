"""
Policies: who may deploy what to a server. Parses a policy and decides about one deployment. Pure functions.

Under any policy, the stack that owns a server may deploy to it. If no stack owns the server, its project may. A list in
``allow`` admits others in addition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stoker.deployments.maintenance_windows import Window
from stoker.hot.words import clip
from stoker.model.errors import Invalid
from stoker.work import cron

#: STACK admits only the stack that owns the server, PROJECT admits every user of its project.
STACK, PROJECT = "STACK", "PROJECT"
#: Name of a policy in error messages.
NAME = "deployment_policy"
#: Maximum length of a window in minutes: a week.
_LONGEST_WINDOW = 7 * 24 * 60
_MOST = 100
_MOST_WINDOWS = 20
_MOST_RUNS = 1000
_KEYS = ("allow", "groups", "max_concurrent_runs", "maintenance_windows")
_WINDOW_KEYS = ("cron", "minutes", "timezone")


@dataclass(frozen=True, slots=True)
class Allowed:
    """An entry of ``allow``: either a stack, by its name or id, or a project, by its id."""

    stack: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one server."""

    #: STACK, PROJECT, or the stacks and projects that are admitted in addition; None: the site's default.
    allow: str | tuple[Allowed, ...] | None = None
    #: Groups of the configs that may run; None: all groups.
    groups: tuple[str, ...] | None = None
    max_concurrent_runs: int = 1
    #: Windows in which runs may begin; empty: at any time.
    windows: tuple[Window, ...] = ()

    def to_json(self, site: str | None = None) -> dict[str, Any]:
        """Return the policy as a map. ``site``: the value of ``allow`` if the policy leaves it to the site."""
        allow: Any = self.allow if self.allow is not None else site
        if isinstance(allow, tuple):
            allow = [{"stack": each.stack} if each.stack else {"project": each.project} for each in allow]
        return {
            "allow": allow,
            "groups": None if self.groups is None else list(self.groups),
            "max_concurrent_runs": self.max_concurrent_runs,
            "maintenance_windows": [
                {"cron": each.begins.expression, "minutes": each.minutes, "timezone": each.begins.zone}
                for each in self.windows
            ],
        }


@dataclass(frozen=True, slots=True)
class Tree:
    """The root of the stack that deploys."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, in the terms of policies."""

    id: str
    name: str
    project_id: str
    #: Ids of the roots of the stacks that own the server or have a resource that represents it.
    trees: frozenset[str] = frozenset()
    #: True if a stack creates and deletes the server.
    owned: bool = False


def read(said: Any, what: str = NAME) -> Policy:
    """
    Parse a policy: STACK, PROJECT, a list of admitted stacks and projects, or a map.

    For example, ``{"allow": [{"stack": "web"}], "groups": ["script"], "max_concurrent_runs": 2}``. Raises Invalid with
    the place and the remedy; ``what`` is the name of the place.
    """
    if not isinstance(said, Mapping):
        return Policy(allow=_parse_allow(said, what))
    for key in said:
        if key not in _KEYS:
            raise Invalid(f"{what}: there is no {_format(key)} in a policy; there are {', '.join(_KEYS)}")
    allow = said.get("allow")
    return Policy(
        allow=None if allow is None else _parse_allow(allow, f"{what}.allow"),
        groups=_groups(said.get("groups"), f"{what}.groups"),
        max_concurrent_runs=_runs(said.get("max_concurrent_runs"), f"{what}.max_concurrent_runs"),
        windows=tuple(_windows(said.get("maintenance_windows"), f"{what}.maintenance_windows")),
    )


def with_project_ids(policy: Policy, resolve: Callable[[str], str]) -> Policy:
    """Return the policy with every project replaced by its id. ``resolve`` takes an id or a name and raises Invalid."""
    if not isinstance(policy.allow, tuple):
        return policy
    return replace(
        policy,
        allow=tuple(replace(each, project=resolve(each.project)) if each.project else each for each in policy.allow),
    )


def decide(
    policy: Policy, server: Target, *, project_id: str, stack: Tree | None, group: str, site: str = PROJECT
) -> str | None:
    """
    Return why the server denies a deployment, or None if the server admits it.

    ``stack`` is the root of the deploying stack, or None for a deployment without a stack. The reason for a project
    that is not admitted discloses nothing else about the server. With PROJECT, deployments of other projects are
    accepted and never run, as with Heat, so that other projects cannot find out whether the server exists.
    """
    mine = project_id == server.project_id
    allow = policy.allow if policy.allow is not None else site
    if not mine and allow == PROJECT:
        return None
    if not (allow == PROJECT or _is_own(server, mine, stack) or _is_named(allow, mine, project_id, stack)):
        if not mine:
            return (
                f"Server {server.id} takes no deployments of project {project_id}: have its owner add"
                f' {{"project": "{project_id}"}} to its deployment_policy.'
            )
        by = f"of the stack {clip(stack.name)}" if stack else "that no stack makes"
        entry = f'{{"stack": "{stack.name}"}}' if stack else f'{{"project": "{project_id}"}}'
        return (
            f"Server {clip(server.name)} takes no deployments {by}: its deployment_policy lets in {_who(allow)}."
            f" Add {entry} to it, or deploy from there."
        )
    if policy.groups is not None and group not in policy.groups:
        return (
            f"Server {clip(server.name)} runs no configs of the group {clip(group)}: its deployment_policy allows"
            f" {_any_of(policy.groups)}. Use such a config, or add the group to the policy."
        )
    return None


def admits(policy: Policy, server: Target, *, project_id: str, stack: Tree | None) -> bool:
    """Return whether a deployment of another project may run on the server."""
    return project_id != server.project_id and _is_named(policy.allow, False, project_id, stack)


def _is_own(server: Target, mine: bool, stack: Tree | None) -> bool:
    return mine and (not server.owned if stack is None else stack.id in server.trees)


def _is_named(allow: str | tuple[Allowed, ...] | None, mine: bool, project_id: str, stack: Tree | None) -> bool:
    """Return whether ``allow`` contains the stack or project. Names match only stacks of the server's own project."""
    if not isinstance(allow, tuple):
        return False
    stacks = () if stack is None else (stack.id, stack.name) if mine else (stack.id,)
    return any(each.project == project_id or (each.stack is not None and each.stack in stacks) for each in allow)


def _who(allow: str | tuple[Allowed, ...]) -> str:
    if isinstance(allow, str):
        return "only the stack that it belongs to (STACK)"
    named = [f"stack {each.stack}" if each.stack else f"project {each.project}" for each in allow]
    return clip(f"only its own stack and {', '.join(named)}" if named else "only its own stack")


def _any_of(groups: Sequence[str]) -> str:
    return clip(f"only {', '.join(groups)}" if groups else "none")


def _parse_allow(said: Any, what: str) -> str | tuple[Allowed, ...]:
    if said in (STACK, PROJECT):
        return str(said)
    if isinstance(said, list | tuple):
        _check_count(said, what, _MOST)
        return tuple(_parse_allowed(each, f"{what}[{place}]") for place, each in enumerate(said))
    raise Invalid(
        f'{what} must be STACK, PROJECT or a list like [{{"stack": "web"}}, {{"project": "<id>"}}], not {_format(said)}'
    )


def _parse_allowed(said: Any, what: str) -> Allowed:
    if not isinstance(said, Mapping) or len(said) != 1 or not said.keys() <= {"stack", "project"}:
        raise Invalid(f'{what} must be {{"stack": "<name or id>"}} or {{"project": "<id>"}}, not {_format(said)}')
    [(kind, named)] = said.items()
    return Allowed(**{kind: _text(named, f"{what}.{kind}")})


def _groups(said: Any, what: str) -> tuple[str, ...] | None:
    if said is None:
        return None
    if not isinstance(said, list | tuple):
        raise Invalid(f'{what} must be a list of groups of configs, like ["script"], not {_format(said)}')
    _check_count(said, what, _MOST)
    return tuple(dict.fromkeys(_text(each, f"{what}[{place}]") for place, each in enumerate(said)))


def _runs(said: Any, what: str) -> int:
    if said is None:
        return 1
    number = _whole(said)
    if number is None or not 1 <= number <= _MOST_RUNS:
        raise Invalid(f"{what} must be a whole number from 1 to {_MOST_RUNS}, not {_format(said)}")
    return number


def _windows(said: Any, what: str) -> list[Window]:
    if said is None:
        return []
    if not isinstance(said, list | tuple):
        raise Invalid(f"{what} must be a list of windows, not {_format(said)}")
    _check_count(said, what, _MOST_WINDOWS)
    return [_window(each, f"{what}[{place}]") for place, each in enumerate(said)]


def _window(said: Any, what: str) -> Window:
    example = '{"cron": "0 2 * * *", "minutes": 120, "timezone": "Europe/Vienna"}'
    if not isinstance(said, Mapping):
        raise Invalid(f"{what} must be a map like {example}, not {_format(said)}")
    for key in said:
        if key not in _WINDOW_KEYS:
            raise Invalid(f"{what}: there is no {_format(key)} in a window; it is like {example}")
    minutes = _whole(said.get("minutes"))
    if minutes is None or not 1 <= minutes <= _LONGEST_WINDOW:
        raise Invalid(
            f"{what}.minutes must be a whole number from 1 to {_LONGEST_WINDOW}, not {_format(said.get('minutes'))}"
        )
    zone = said.get("timezone")
    return Window(cron.read(said.get("cron"), "UTC" if zone is None else zone, f"{what}."), minutes)


def _whole(said: Any) -> int | None:
    """Accept numbers as text too: templates may contain either."""
    if isinstance(said, str) and said.isascii() and said.isdecimal() and len(said) < 10:
        return int(said)
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def _text(said: Any, what: str) -> str:
    if not isinstance(said, str) or not 1 <= len(said) <= 255 or "\0" in said:
        raise Invalid(f"{what} must be 1 to 255 characters of text, not {_format(said)}")
    return said


def _check_count(said: Sequence[Any], what: str, most: int) -> None:
    if len(said) > most:
        raise Invalid(f"{what} may have {most} entries, not {len(said)}")


def _format(said: Any) -> str:
    return clip(repr(said))
