"""
Policies: who may deploy what to a server. Parses a policy and decides about one deployment. Pure functions.

Under any policy, the stack that owns a server may deploy to it. If no stack owns the server, its project may. A list in
``allow`` admits others in addition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from stoker import json_values
from stoker.hot.words import clip
from stoker.json_values import RequiredName
from stoker.model.config import DeliveredHook
from stoker.model.errors import Invalid
from stoker.policy.windows import Window
from stoker.work import cron

#: STACK admits only the stack that owns the server, PROJECT admits every user of its project.
STACK: Final = "STACK"
PROJECT: Final = "PROJECT"
#: Hooks that an agent may fetch: none, those that Stoker stores, or those of any URL.
NO_HOOKS, STORED_HOOKS, ANY_HOOKS = "NONE", "STORED", "ANY"
#: Name of a policy in error messages.
NAME = "deployment_policy"


class Allowed(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An entry of ``allow``: either a stack, by its name or id, or a project, by its id."""

    stack: RequiredName | None = None
    project: RequiredName | None = None

    def __post_init__(self) -> None:
        if (self.stack is None) is (self.project is None):
            raise ValueError('it must be {"stack": "<name or id>"} or {"project": "<id>"}')


class NewWindow(Struct, frozen=True, forbid_unknown_fields=True):
    """A window as requests define it. It lasts a week at most."""

    cron: Annotated[str, Meta(examples=["0 2 * * *", "30 22 * * sun"])]
    minutes: Annotated[int, Meta(ge=1, le=7 * 24 * 60)]
    timezone: Annotated[str, Meta(examples=["Europe/Vienna"])] | None = None


Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Allow = Literal["STACK", "PROJECT"] | Annotated[tuple[Allowed, ...], Meta(max_length=100)]
Hooks = Literal["NONE", "STORED", "ANY"] | Annotated[tuple[Digest, ...], Meta(max_length=100)]


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of one server. In requests, what is omitted or null has its default."""

    #: STACK, PROJECT, or the stacks and projects that are admitted in addition; None: the site's default.
    allow: Allow | None = None
    #: Groups of the configs that may run; None: all groups.
    groups: Annotated[tuple[RequiredName, ...], Meta(max_length=100)] | None = None
    #: NONE, STORED, ANY, or the digests of the hooks that the agent may fetch; None: NONE if the policy has ``groups``,
    #: because a hook could run anything under the name of an allowed group, else the site's default.
    hooks: Hooks | None = None
    max_concurrent_runs: Annotated[int, Meta(ge=1, le=1000)] | None = 1
    #: Without any, runs may begin at any time.
    maintenance_windows: Annotated[tuple[NewWindow, ...], Meta(max_length=20)] | None = ()

    @property
    def windows(self) -> tuple[Window, ...]:
        """The windows in which runs may begin. Raises Invalid."""
        return _read_windows(self.maintenance_windows or ())

    def to_json(self, site: str | None = None) -> dict[str, Any]:
        """Return the policy as a map. ``site``: the value of ``allow`` if the policy leaves it to the site."""
        shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))  # with lists, as in the database
        return {**shown, "allow": site} if self.allow is None else shown


#: All forms of a policy in requests and templates. STACK, PROJECT and a list are the value of ``allow``.
PolicyRequest = Allow | Policy


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
    Return the policy that a value in JSON or of a template defines, such as ``{"allow": [{"stack": "web"}], "groups":
    ["script"]}``. Raises Invalid with the wrong member; ``what`` names the value.
    """
    try:
        # Not strictly: templates may contain numbers as text.
        return resolve(json_values.convert(value, cast("Any", PolicyRequest), "the policy", strict=False))
    except Invalid as error:
        raise Invalid(f"{what}: {error.message}") from None


def resolve(request: PolicyRequest) -> Policy:
    """Return the policy that a request defines, with its defaults. Raises Invalid for a wrong window."""
    if not isinstance(request, Policy):
        return Policy(allow=request)
    return replace(
        request,
        groups=None if request.groups is None else _unique(request.groups),
        hooks=_unique(request.hooks) if isinstance(request.hooks, tuple) else request.hooks,
        max_concurrent_runs=request.max_concurrent_runs or 1,
        maintenance_windows=tuple(
            NewWindow(window.begins.expression, window.minutes, window.begins.zone) for window in request.windows
        ),
    )


@lru_cache(maxsize=4096)
def _read_windows(windows: tuple[NewWindow, ...]) -> tuple[Window, ...]:
    return tuple(
        Window(cron.read(window.cron, window.timezone or "UTC", f"maintenance_windows[{index}]."), window.minutes)
        for index, window in enumerate(windows)
    )


def _unique(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


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
        return _deny_deployer(allow, server, project_id, stack)
    if policy.groups is not None and group not in policy.groups:
        return (
            f"Server {clip(server.name)} runs no configs of the group {clip(group)}: its deployment_policy allows"
            f" {_any_of(policy.groups)}. Use such a config, or add the group to the policy."
        )
    return None if hook is None else _deny_hook(policy, server, hook, site.hooks)


def _deny_deployer(allow: str | tuple[Allowed, ...], server: Target, project_id: str, stack: Tree | None) -> str:
    """Return the reason for a project or stack that ``allow`` does not let in."""
    if project_id != server.project_id:
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


def _deny_hook(policy: Policy, server: Target, hook: DeliveredHook, site: str) -> str | None:
    """Return why the server does not fetch the hook, or None."""
    name = clip(server.name)
    if not server.own_agent:
        return f"Server {name} runs the agent of OpenStack, which fetches no hooks: install the hook there."
    by_default = site if policy.groups is None else NO_HOOKS
    allowed: str | tuple[str, ...] = by_default if policy.hooks is None else policy.hooks
    if allowed == ANY_HOOKS or (allowed == STORED_HOOKS and hook.is_stored) or hook.sha256 in allowed:
        return None
    rule = f"a list that {hook.sha256} is not in" if isinstance(allowed, tuple) else allowed
    remedy = " or a hook of `stoker hook list`" if allowed == STORED_HOOKS else ""
    return (
        f"Server {name} does not fetch the hook {clip(hook.url)}: its policy for hooks is {rule}."
        f" Use an installed hook{remedy}, or add the digest to `hooks` of its deployment_policy."
    )


def admits(policy: Policy, project_id: str, stack: Tree | None) -> bool:
    """Return whether a deployment of another project than the server's may run on the server."""
    return _is_named(policy.allow, False, project_id, stack)


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
