"""
Who may deploy to a server, and what: the shape of a policy, and what it says to one deployment. Pure.

Whatever a policy says, the stack that a server belongs to may deploy to it, and so may its project where no stack owns
it: a list lets in others besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.deployments.clock import Window
from stoker.hot.words import clip
from stoker.model.errors import Invalid
from stoker.work import cron

#: Only the stack that the server belongs to; anybody of its project.
STACK, PROJECT = "STACK", "PROJECT"
#: What errors call a policy.
NAME = "deployment_policy"
#: Minutes of a window: a week.
_LONGEST_WINDOW = 7 * 24 * 60
_MOST = 100
_MOST_WINDOWS = 20
_MOST_RUNS = 1000
_KEYS = ("allow", "groups", "max_concurrent_runs", "maintenance_windows")
_WINDOW_KEYS = ("cron", "minutes", "timezone")


@dataclass(frozen=True, slots=True)
class Allowed:
    """One of the two: a stack by its name or id, or a project by its id."""

    stack: str | None = None
    project: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    #: STACK, PROJECT, or who is let in besides the server's own; None: what the site says.
    allow: str | tuple[Allowed, ...] | None = None
    #: Groups of the configs that may run; None: any.
    groups: tuple[str, ...] | None = None
    max_concurrent_runs: int = 1
    #: When runs may begin; none: at any time.
    windows: tuple[Window, ...] = ()

    def to_json(self, site: str | None = None) -> dict[str, Any]:
        """``site``: what stands where the policy leaves it to the site."""
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
    """The stack at the top of the one that deploys."""

    id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, as policies look at it."""

    id: str
    name: str
    project_id: str
    #: Tops of the stacks that it belongs to, or that have a resource which stands for it.
    trees: frozenset[str] = frozenset()
    #: A stack made it, and ends it.
    owned: bool = False


def read(said: Any, what: str = NAME) -> Policy:
    """A word, a list of who is let in, or a map. Raises Invalid that names the place and the remedy."""
    if not isinstance(said, Mapping):
        return Policy(allow=_allow(said, what))
    for key in said:
        if key not in _KEYS:
            raise Invalid(f"{what}: there is no {_shown(key)} in a policy; there are {', '.join(_KEYS)}")
    allow = said.get("allow")
    return Policy(
        allow=None if allow is None else _allow(allow, f"{what}.allow"),
        groups=_groups(said.get("groups"), f"{what}.groups"),
        max_concurrent_runs=_runs(said.get("max_concurrent_runs"), f"{what}.max_concurrent_runs"),
        windows=tuple(_windows(said.get("maintenance_windows"), f"{what}.maintenance_windows")),
    )


def decide(
    policy: Policy, server: Target, *, project_id: str, stack: Tree | None, group: str, site: str = PROJECT
) -> str | None:
    """
    Why the server takes no such deployment; None: it does. ``stack``: whose it is, if it is one's.

    Of another project's, which it lets not in, it says nothing of its own but that. With PROJECT those are taken and
    never run, as with Heat: nobody can tell from that whether there is such a server.
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
    """Whether it is another project's and is to run all the same."""
    return project_id != server.project_id and _is_named(policy.allow, False, project_id, stack)


def _is_own(server: Target, mine: bool, stack: Tree | None) -> bool:
    return mine and (not server.owned if stack is None else stack.id in server.trees)


def _is_named(allow: str | tuple[Allowed, ...] | None, mine: bool, project_id: str, stack: Tree | None) -> bool:
    """Names of stacks are those of the server's own project; ids are anybody's."""
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


def _allow(said: Any, what: str) -> str | tuple[Allowed, ...]:
    if said in (STACK, PROJECT):
        return str(said)
    if isinstance(said, list | tuple):
        _check_count(said, what, _MOST)
        return tuple(_allowed(each, f"{what}[{place}]") for place, each in enumerate(said))
    raise Invalid(
        f'{what} must be STACK, PROJECT or a list like [{{"stack": "web"}}, {{"project": "<id>"}}], not {_shown(said)}'
    )


def _allowed(said: Any, what: str) -> Allowed:
    if not isinstance(said, Mapping) or len(said) != 1 or not said.keys() <= {"stack", "project"}:
        raise Invalid(f'{what} must be {{"stack": "<name or id>"}} or {{"project": "<id>"}}, not {_shown(said)}')
    [(kind, named)] = said.items()
    return Allowed(**{kind: _text(named, f"{what}.{kind}")})


def _groups(said: Any, what: str) -> tuple[str, ...] | None:
    if said is None:
        return None
    if not isinstance(said, list | tuple):
        raise Invalid(f'{what} must be a list of groups of configs, like ["script"], not {_shown(said)}')
    _check_count(said, what, _MOST)
    return tuple(dict.fromkeys(_text(each, f"{what}[{place}]") for place, each in enumerate(said)))


def _runs(said: Any, what: str) -> int:
    if said is None:
        return 1
    number = _whole(said)
    if number is None or not 1 <= number <= _MOST_RUNS:
        raise Invalid(f"{what} must be a whole number from 1 to {_MOST_RUNS}, not {_shown(said)}")
    return number


def _windows(said: Any, what: str) -> list[Window]:
    if said is None:
        return []
    if not isinstance(said, list | tuple):
        raise Invalid(f"{what} must be a list of windows, not {_shown(said)}")
    _check_count(said, what, _MOST_WINDOWS)
    return [_window(each, f"{what}[{place}]") for place, each in enumerate(said)]


def _window(said: Any, what: str) -> Window:
    example = '{"cron": "0 2 * * *", "minutes": 120, "timezone": "Europe/Vienna"}'
    if not isinstance(said, Mapping):
        raise Invalid(f"{what} must be a map like {example}, not {_shown(said)}")
    for key in said:
        if key not in _WINDOW_KEYS:
            raise Invalid(f"{what}: there is no {_shown(key)} in a window; it is like {example}")
    minutes = _whole(said.get("minutes"))
    if minutes is None or not 1 <= minutes <= _LONGEST_WINDOW:
        raise Invalid(
            f"{what}.minutes must be a whole number from 1 to {_LONGEST_WINDOW}, not {_shown(said.get('minutes'))}"
        )
    zone = said.get("timezone")
    return Window(cron.read(said.get("cron"), "UTC" if zone is None else zone, f"{what}."), minutes)


def _whole(said: Any) -> int | None:
    """Templates' numbers may be text."""
    if isinstance(said, str) and said.isascii() and said.isdecimal() and len(said) < 10:
        return int(said)
    return said if isinstance(said, int) and not isinstance(said, bool) else None


def _text(said: Any, what: str) -> str:
    if not isinstance(said, str) or not 1 <= len(said) <= 255 or "\0" in said:
        raise Invalid(f"{what} must be 1 to 255 characters of text, not {_shown(said)}")
    return said


def _check_count(said: Sequence[Any], what: str, most: int) -> None:
    if len(said) > most:
        raise Invalid(f"{what} may have {most} entries, not {len(said)}")


def _shown(said: Any) -> str:
    return clip(repr(said))
