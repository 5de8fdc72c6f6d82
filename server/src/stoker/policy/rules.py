"""
Policies: who may deploy what to a server. Parses a policy and decides about one deployment. Pure functions.

Under any policy, the stack that owns a server may deploy to it. If no stack owns the server, its project may. A list in
``allow`` admits others in addition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stoker.hot.words import clip
from stoker.model.delivered_hook import DeliveredHook, is_digest
from stoker.model.errors import Invalid
from stoker.policy.windows import Window
from stoker.work import cron

#: STACK admits only the stack that owns the server, PROJECT admits every user of its project.
STACK, PROJECT = "STACK", "PROJECT"
#: Hooks that an agent may fetch: none, those that Stoker stores, or those of any URL.
NO_HOOKS, STORED_HOOKS, ANY_HOOKS = "NONE", "STORED", "ANY"
HOOK_SCOPES = (NO_HOOKS, STORED_HOOKS, ANY_HOOKS)
#: Name of a policy in error messages.
NAME = "deployment_policy"
#: Maximum length of a window in minutes: a week.
_LONGEST_WINDOW = 7 * 24 * 60
_MOST = 100
_MOST_WINDOWS = 20
_MOST_RUNS = 1000
_KEYS = ("allow", "groups", "hooks", "max_concurrent_runs", "maintenance_windows")
_WINDOW_KEYS = ("cron", "minutes", "timezone")


class Allowed(Struct, frozen=True):
    """An entry of ``allow``: either a stack, by its name or id, or a project, by its id."""

    stack: str | None = None
    project: str | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """The rules of one server."""

    #: STACK, PROJECT, or the stacks and projects that are admitted in addition; None: the site's default.
    allow: str | tuple[Allowed, ...] | None = None
    #: Groups of the configs that may run; None: all groups.
    groups: tuple[str, ...] | None = None
    #: NONE, STORED, ANY, or the digests of the hooks that the agent may fetch; None: NONE if the policy has ``groups``,
    #: because a hook could run anything under the name of an allowed group, else the site's default.
    hooks: str | tuple[str, ...] | None = None
    max_concurrent_runs: int = 1
    #: Windows in which runs may begin; empty: at any time.
    windows: tuple[Window, ...] = ()

    def to_json(self, site: str | None = None) -> dict[str, Any]:
        """Return the policy as a map. ``site``: the value of ``allow`` if the policy leaves it to the site."""
        allow: Any = self.allow if self.allow is not None else site
        if isinstance(allow, tuple):
            allow = [{"stack": entry.stack} if entry.stack else {"project": entry.project} for entry in allow]
        return {
            "allow": allow,
            "groups": None if self.groups is None else list(self.groups),
            "hooks": list(self.hooks) if isinstance(self.hooks, tuple) else self.hooks,
            "max_concurrent_runs": self.max_concurrent_runs,
            "maintenance_windows": [
                {"cron": window.begins.expression, "minutes": window.minutes, "timezone": window.begins.zone}
                for window in self.windows
            ],
        }


@dataclass(frozen=True, slots=True)
class SiteDefaults:
    """The rules of a site for servers whose policy does not set them."""

    #: STACK or PROJECT.
    allow: str = PROJECT
    #: NONE, STORED or ANY.
    hooks: str = STORED_HOOKS


#: The rules of a site without settings of its own.
SITE_DEFAULTS = SiteDefaults()


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
    #: False if the server is known to run OpenStack's agent.
    own_agent: bool = True


def read(value: Any, what: str = NAME) -> Policy:
    """
    Parse a policy: STACK, PROJECT, a list of admitted stacks and projects, or a map.

    For example, ``{"allow": [{"stack": "web"}], "groups": ["script"], "max_concurrent_runs": 2}``. Raises Invalid with
    the place and the remedy; ``what`` is the name of the place.
    """
    if not isinstance(value, Mapping):
        return Policy(allow=_parse_allow(value, what))
    for key in value:
        if key not in _KEYS:
            raise Invalid(f"{what}: there is no {_format(key)} in a policy; there are {', '.join(_KEYS)}")
    allow = value.get("allow")
    return Policy(
        allow=None if allow is None else _parse_allow(allow, f"{what}.allow"),
        groups=_groups(value.get("groups"), f"{what}.groups"),
        hooks=_hooks(value.get("hooks"), f"{what}.hooks"),
        max_concurrent_runs=_runs(value.get("max_concurrent_runs"), f"{what}.max_concurrent_runs"),
        windows=tuple(_windows(value.get("maintenance_windows"), f"{what}.maintenance_windows")),
    )


def with_project_ids(policy: Policy, resolve: Callable[[str], str]) -> Policy:
    """Return the policy with every project replaced by its id. ``resolve`` takes an id or a name and raises Invalid."""
    if not isinstance(policy.allow, tuple):
        return policy
    return replace(
        policy,
        allow=tuple(
            replace(entry, project=resolve(entry.project)) if entry.project else entry for entry in policy.allow
        ),
    )


def decide(
    policy: Policy,
    server: Target,
    *,
    project_id: str,
    stack: Tree | None,
    group: str,
    hook: DeliveredHook | None = None,
    site: SiteDefaults = SITE_DEFAULTS,
) -> str | None:
    """
    Return why the server denies a deployment, or None if the server admits it.

    ``stack`` is the root of the deploying stack, or None for a deployment without a stack. ``hook`` is the hook that
    the agent has to fetch. The reason for a project that is not admitted discloses nothing else about the server. With
    PROJECT, deployments of other projects are accepted and never run, as with Heat, so that other projects cannot find
    out whether the server exists.
    """
    is_own_project = project_id == server.project_id
    allow = policy.allow if policy.allow is not None else site.allow
    if not is_own_project and allow == PROJECT:
        return None
    if not (
        allow == PROJECT
        or _is_own(server, is_own_project, stack)
        or _is_named(allow, is_own_project, project_id, stack)
    ):
        if not is_own_project:
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
    return None if hook is None else _deny_hook(policy, server, hook, site.hooks)


def _deny_hook(policy: Policy, server: Target, hook: DeliveredHook, site: str) -> str | None:
    """Return why the server does not fetch the hook, or None."""
    name = clip(server.name)
    if not server.own_agent:
        return f"Server {name} runs the agent of OpenStack, which fetches no hooks: install the hook there."
    allowed = policy.hooks
    if allowed is None:
        allowed = NO_HOOKS if policy.groups is not None else site
    if allowed == ANY_HOOKS or (allowed == STORED_HOOKS and hook.is_stored) or hook.sha256 in allowed:
        return None
    rule = f"a list that {hook.sha256} is not in" if isinstance(allowed, tuple) else allowed
    remedy = " or a hook of `stoker hook list`" if allowed == STORED_HOOKS else ""
    return (
        f"Server {name} does not fetch the hook {clip(hook.url)}: its policy for hooks is {rule}."
        f" Use an installed hook{remedy}, or add the digest to `hooks` of its deployment_policy."
    )


def admits(policy: Policy, server: Target, *, project_id: str, stack: Tree | None) -> bool:
    """Return whether a deployment of another project may run on the server."""
    return project_id != server.project_id and _is_named(policy.allow, False, project_id, stack)


def _is_own(server: Target, is_own_project: bool, stack: Tree | None) -> bool:
    return is_own_project and (not server.owned if stack is None else stack.id in server.trees)


def _is_named(
    allow: str | tuple[Allowed, ...] | None, is_own_project: bool, project_id: str, stack: Tree | None
) -> bool:
    """Return whether ``allow`` contains the stack or project. Names match only stacks of the server's own project."""
    if not isinstance(allow, tuple):
        return False
    stacks = () if stack is None else (stack.id, stack.name) if is_own_project else (stack.id,)
    return any(entry.project == project_id or (entry.stack is not None and entry.stack in stacks) for entry in allow)


def _who(allow: str | tuple[Allowed, ...]) -> str:
    if isinstance(allow, str):
        return "only the stack that it belongs to (STACK)"
    names = [f"stack {entry.stack}" if entry.stack else f"project {entry.project}" for entry in allow]
    return clip(f"only its own stack and {', '.join(names)}" if names else "only its own stack")


def _any_of(groups: Sequence[str]) -> str:
    return clip(f"only {', '.join(groups)}" if groups else "none")


def _parse_allow(value: Any, what: str) -> str | tuple[Allowed, ...]:
    if value in (STACK, PROJECT):
        return str(value)
    if isinstance(value, list | tuple):
        _check_count(value, what, _MOST)
        return tuple(_parse_allowed(entry, f"{what}[{index}]") for index, entry in enumerate(value))
    raise Invalid(
        f'{what} must be STACK, PROJECT or a list like [{{"stack": "web"}}, {{"project": "<id>"}}],'
        f" not {_format(value)}"
    )


def _parse_allowed(value: Any, what: str) -> Allowed:
    if not isinstance(value, Mapping) or len(value) != 1 or not value.keys() <= {"stack", "project"}:
        raise Invalid(f'{what} must be {{"stack": "<name or id>"}} or {{"project": "<id>"}}, not {_format(value)}')
    [(kind, name)] = value.items()
    return Allowed(**{kind: _text(name, f"{what}.{kind}")})


def _groups(value: Any, what: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise Invalid(f'{what} must be a list of groups of configs, like ["script"], not {_format(value)}')
    _check_count(value, what, _MOST)
    return tuple(dict.fromkeys(_text(group, f"{what}[{index}]") for index, group in enumerate(value)))


def _hooks(value: Any, what: str) -> str | tuple[str, ...] | None:
    if value is None or value in HOOK_SCOPES:
        return None if value is None else str(value)
    if not isinstance(value, list | tuple) or not all(is_digest(digest) for digest in value):
        raise Invalid(
            f"{what} must be {', '.join(HOOK_SCOPES)} or a list of SHA-256 digests (64 hexadecimal digits), not"
            f" {_format(value)}"
        )
    _check_count(value, what, _MOST)
    return tuple(dict.fromkeys(value))


def _runs(value: Any, what: str) -> int:
    if value is None:
        return 1
    number = _whole(value)
    if number is None or not 1 <= number <= _MOST_RUNS:
        raise Invalid(f"{what} must be a whole number from 1 to {_MOST_RUNS}, not {_format(value)}")
    return number


def _windows(value: Any, what: str) -> list[Window]:
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise Invalid(f"{what} must be a list of windows, not {_format(value)}")
    _check_count(value, what, _MOST_WINDOWS)
    return [_window(window, f"{what}[{index}]") for index, window in enumerate(value)]


def _window(value: Any, what: str) -> Window:
    example = '{"cron": "0 2 * * *", "minutes": 120, "timezone": "Europe/Vienna"}'
    if not isinstance(value, Mapping):
        raise Invalid(f"{what} must be a map like {example}, not {_format(value)}")
    for key in value:
        if key not in _WINDOW_KEYS:
            raise Invalid(f"{what}: there is no {_format(key)} in a window; it is like {example}")
    minutes = _whole(value.get("minutes"))
    if minutes is None or not 1 <= minutes <= _LONGEST_WINDOW:
        raise Invalid(
            f"{what}.minutes must be a whole number from 1 to {_LONGEST_WINDOW}, not {_format(value.get('minutes'))}"
        )
    zone = value.get("timezone")
    return Window(cron.read(value.get("cron"), "UTC" if zone is None else zone, f"{what}."), minutes)


def _whole(value: Any) -> int | None:
    """Accept numbers as text too: templates may contain either."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 255 or "\0" in value:
        raise Invalid(f"{what} must be 1 to 255 characters of text, not {_format(value)}")
    return value


def _check_count(value: Sequence[Any], what: str, most: int) -> None:
    if len(value) > most:
        raise Invalid(f"{what} may have {most} entries, not {len(value)}")


def _format(value: Any) -> str:
    return clip(repr(value))
