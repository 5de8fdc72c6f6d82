"""
Software configs: immutable content for a hook, with declared inputs and outputs; which hooks a config needs on its
server, and delivered hooks, which an agent fetches for one run, as the option ``hook`` of a config names them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter, methodcaller
from typing import Any

from msgspec import Struct, field

from stoker.model.errors import Invalid

#: Heat's group for a config that names none. No hook runs this group.
UNGROUPED = "Heat::Ungrouped"
#: The group of configs that have a part for each action.
COMPONENT = "component"
#: An input that every derived config has, including those that Heat's clients derive, and that no other config uses.
_DERIVED = "deploy_server_id"
#: The types of inputs and outputs, each with the type of HOT's parameters with the same values.
INPUT_TYPES: Mapping[str, str] = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
#: Inputs that Stoker adds itself. A client that knows their values can report a result.
CREDENTIALS = frozenset(("deploy_password", "deploy_signal_id", "deploy_url_signature"))
_NAME, _SECRET = itemgetter("name"), methodcaller("get", "secret")


class Config(Struct, frozen=True, kw_only=True):
    """
    A software config. ``inputs`` and ``outputs`` are Heat's entries in stored form (``deployments.schema``), and the
    API returns them unchanged.
    """

    id: str
    project_id: str
    name: str | None = None
    group: str | None = None
    config: Any = None
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime
    #: Stoker created the config for the run of a deployment, and deletes it with the last deployment that runs it.
    is_owned: bool = False

    @property
    def is_derived(self) -> bool:
        """Whether the config is the copy that one run executes, with the deployment's input values."""
        return _DERIVED in map(_NAME, self.inputs)

    @property
    def has_secrets(self) -> bool:
        """Whether an input is marked as secret."""
        return any(map(_SECRET, self.inputs))


class Content(Struct, frozen=True, kw_only=True):
    """
    What the runs of a deployment or of a trigger execute: a copy of a config. Targets of a trigger that start later run
    the same content.
    """

    name: str | None
    group: str
    config: Any
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    options: Mapping[str, Any]
    #: Of a structured deployment: the key that marks the place of a value; None: nothing is substituted.
    input_key: str | None = None
    #: An input without a value is an error.
    strict: bool = False
    #: ``deploy_*`` inputs of the deployment that the content is copied from.
    facts: Mapping[str, str]

    @classmethod
    def of(cls, config: Config) -> Content:
        """Return the content of a config, without facts of a stack."""
        return cls(
            name=config.name,
            group=config.group or UNGROUPED,
            config=config.config,
            inputs=config.inputs,
            outputs=config.outputs,
            options=config.options,
            facts={},
        )


#: The option with the names of deployments on the same server for which a run waits.
DEPENDS_ON = "depends_on"


def depends_on(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the deployments for which a run with these options waits."""
    return list_names(options.get(DEPENDS_ON)) or ()


def list_names(value: Any) -> tuple[str, ...] | None:
    """Return the names in a value of the option ``depends_on``; None if the value is not valid."""
    if isinstance(value, str) and value:
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    return None


#: The option of a config that names its hook.
HOOK_OPTION = "hook"
#: Where agents fetch stored hooks, relative to Stoker's URL.
STORED_HOOKS_PATH = "/agent/v1/hooks/"
_DIGEST = re.compile("[0-9a-f]{64}")
_HOOK_FORM = (
    'the option hook is the name of a stored hook, {"name": …, "version": …}, '
    'or {"url": …, "sha256": …} with a URL of http or https'
)
_LONGEST_URL = 2048


@dataclass(frozen=True, slots=True)
class DeliveredHook:
    """A hook with its digest, as agents fetch it."""

    url: str
    sha256: str

    @property
    def is_stored(self) -> bool:
        """Whether Stoker stores the hook."""
        return self.url.startswith(STORED_HOOKS_PATH)


@dataclass(frozen=True, slots=True)
class HookName:
    """The name of a stored hook; without a version, the newest one."""

    name: str
    version: int | None = None


def parse_hook_option(value: Any) -> DeliveredHook | HookName:
    """Parse the option ``hook`` of a config. Raises Invalid."""
    if isinstance(value, str) and value:
        return HookName(value)
    if isinstance(value, Mapping) and "url" in value:
        return _parse_delivered_hook(value)
    if isinstance(value, Mapping) and value.keys() <= {"name", "version"}:
        return _parse_hook_name(value.get("name"), value.get("version"))
    raise Invalid(_HOOK_FORM)


def find_delivered_hook(options: Any) -> DeliveredHook | None:
    """Return the hook of a stored config's options, or None. The options were checked when the config was created."""
    value = options.get(HOOK_OPTION) if isinstance(options, Mapping) else None
    return _parse_delivered_hook(value) if isinstance(value, Mapping) else None


def is_digest(value: Any) -> bool:
    """Return whether a value is a SHA-256 in lower-case hexadecimal digits."""
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _parse_hook_name(name: Any, version: Any) -> HookName:
    is_number = isinstance(version, int) and not isinstance(version, bool) and version > 0
    if not (isinstance(name, str) and name and (version is None or is_number)):
        raise Invalid(_HOOK_FORM)
    return HookName(name, version)


def _parse_delivered_hook(value: Mapping[str, Any]) -> DeliveredHook:
    url, sha256 = value.get("url"), str(value.get("sha256") or "").lower()
    if not is_digest(sha256):
        raise Invalid(f"{_HOOK_FORM}; sha256 has 64 hexadecimal digits")
    is_url = isinstance(url, str) and url.isprintable() and " " not in url and len(url) <= _LONGEST_URL
    if not is_url or not str(url).startswith(("http://", "https://", STORED_HOOKS_PATH)):
        raise Invalid(_HOOK_FORM)
    return DeliveredHook(str(url), sha256)


#: Every agent has the hooks of these groups.
EVERYWHERE = frozenset(("script",))
#: The option of a config that says whether the server must have the hook beforehand.
HOOK_REQUIRED = "hook_required"


def needed_groups(group: str | None, config: Any, options: Any, actions: Collection[str]) -> frozenset[str]:
    """
    Return the groups whose hooks the runs of a config, by these ``actions`` of a component, need on the server
    beforehand: none if it has no group, delivers or does not require its hook, or every agent has it.
    """
    if options is not None and not isinstance(options, Mapping):
        return frozenset()  # not known yet
    chosen = options or {}
    if chosen.get(HOOK_OPTION) is not None or chosen.get(HOOK_REQUIRED) is False:
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
