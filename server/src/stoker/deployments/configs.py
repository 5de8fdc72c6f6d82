"""
Creation and deletion of configs: their options for runs, the hooks that they bring along, and their content.

An option of a run is the user, a limit, variables, the order, the undo or the event sinks. Names of stored hooks become
URLs and digests when a config is created, because a config never changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import uuid4

from msgspec.structs import replace

from stoker.catalog import entry
from stoker.deployments import schema
from stoker.deployments.derive import DEPLOY_PREFIX
from stoker.hot import weigh
from stoker.hot.environment import list_sinks
from stoker.hot.flaw import Flaw
from stoker.hot.text import MAX_TEMPLATE, read
from stoker.hot.words import clip
from stoker.model.artifact import Artifact, ArtifactKind
from stoker.model.config import (
    DEPENDS_ON,
    HOOK_OPTION,
    STORED_HOOKS_PATH,
    Config,
    DeliveredHook,
    HookName,
    list_names,
    parse_hook_option,
)
from stoker.model.deployment import CheckSettings
from stoker.model.errors import Invalid, ResourceInUse
from stoker.store import artifacts, configs, triggers
from stoker.store.tx import Tx

_FIELDS = ("group", "config", "options", "inputs", "outputs")
#: The option that says what undoes a run: true for the hook, or the text of a script.
UNDO = "undo"
#: The option with the queues that receive the drift of a deployment, in the form of an environment's.
EVENT_SINKS = "event_sinks"
#: The group of scripts.
SCRIPT = "script"
#: Groups whose built-in hooks cannot undo, because their configs have no general inverse.
WITHOUT_UNDO = frozenset(
    ("agent", "ansible", "apply-config", "cfn-init", "chef", "hiera", "puppet", "reboot", "salt", SCRIPT)
)


class _Option(NamedTuple):
    is_valid: Callable[[Any], bool]
    expected: str


def _matches(pattern: str) -> Callable[[Any], bool]:
    compiled = re.compile(pattern)
    return lambda value: not isinstance(value, bool) and compiled.fullmatch(str(value)) is not None


def _between(least: int, most: int) -> Callable[[Any], bool]:
    is_whole = _matches("-?[0-9]{1,9}")
    return lambda value: is_whole(value) and least <= int(value) <= most


def _are_variables(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(schema.VARIABLE.fullmatch(str(name)) and "\0" not in str(text) for name, text in value.items())


_OPTIONS: Mapping[str, _Option] = {
    "user": _Option(lambda value: isinstance(value, str) and 0 < len(value) <= 255, "the name of a user"),
    "memory_max": _Option(_matches("0*[1-9][0-9]{0,14}[KMGT]?"), "a size such as 512M"),
    "cpu_max": _Option(_matches("0*[1-9][0-9]{0,5}%"), "a share of one CPU such as 50%"),
    "tasks_max": _Option(_between(1, 4194304), "a number of processes from 1 to 4194304"),
    "nice": _Option(_between(-20, 19), "a number from -20 to 19"),
    "private_tmp": _Option(lambda value: str(value).lower() in ("true", "false"), "true or false"),
    "limits": _Option(_matches("strict|best_effort"), "strict or best_effort"),
    "environment": _Option(_are_variables, "a map of environment variables"),
    DEPENDS_ON: _Option(lambda value: list_names(value) is not None, "the name of a deployment, or a list of names"),
}


def check_options(options: Mapping[str, Any], group: Any = None) -> None:
    """Raise Invalid, with the option's name, for a value that no agent of a config's ``group`` accepts."""
    for name, option in _OPTIONS.items():
        value = options.get(name)
        if value is not None and not option.is_valid(value):
            raise Invalid(f"The option {name} must be {option.expected}, not {clip(repr(value))}")
    try:
        list_sinks(options.get(EVENT_SINKS))
    except Flaw as error:
        raise Invalid(f"The option {error.sentence}") from None
    if group in WITHOUT_UNDO and read_undo(options) is True and options.get(HOOK_OPTION) is None:
        raise Invalid(
            f"The option {UNDO} must be the text of a script that undoes the config, not true: the hook of the group"
            f" {group} cannot undo"
        )


def read_undo(options: Mapping[str, Any]) -> str | bool | None:
    """Return what undoes a run with these options: True for the hook, the text of a script, or None."""
    value = options.get(UNDO)
    if value in (None, False, ""):
        return None
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return True if value.strip().lower() == "true" else None
    return value if isinstance(value, str) else True


def resolve_hook(tx: Tx, project_id: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    Return a config's options with the hook as agents fetch it: of a name, the version that is the newest now. Raises
    Invalid for a hook that the project cannot read.
    """
    if options.get(HOOK_OPTION) is None:
        return options
    hook = parse_hook_option(options[HOOK_OPTION])
    if isinstance(hook, HookName):
        return {**options, HOOK_OPTION: _to_option(_find(tx, project_id, hook))}
    if hook.is_stored:
        return {**options, HOOK_OPTION: _to_option(_find_copy(tx, project_id, hook))}
    return {**options, HOOK_OPTION: {"url": hook.url, "sha256": hook.sha256}}


def find_hook(tx: Tx, project_id: str, value: Any) -> DeliveredHook:
    """Return the hook that a value of the option ``hook`` names, as agents would fetch it now. Raises Invalid."""
    resolved = resolve_hook(tx, project_id, {HOOK_OPTION: value})[HOOK_OPTION]
    return DeliveredHook(resolved["url"], resolved["sha256"])


def check_option(options: Any) -> None:
    """Check the form of the option ``hook`` before a config is created. Raises Invalid."""
    if isinstance(options, Mapping) and options.get(HOOK_OPTION) is not None:
        parse_hook_option(options[HOOK_OPTION])


def _find(tx: Tx, project_id: str, hook: HookName) -> Artifact:
    artifact = artifacts.find(tx, ArtifactKind.HOOK, project_id, hook.name, hook.version)
    if artifact is None:
        version = "" if hook.version is None else f" with the version {hook.version}"
        raise Invalid(
            f"There is no stored hook {hook.name!r}{version}: add it with `stoker hook add {hook.name} FILE`."
        )
    return artifact


def _find_copy(tx: Tx, project_id: str, hook: DeliveredHook) -> Artifact:
    """Return the stored hook of a config that a client derived from another one."""
    artifact = artifacts.find_by_digest(tx, ArtifactKind.HOOK, project_id, hook.sha256)
    if artifact is None or hook.url != STORED_HOOKS_PATH + hook.sha256:
        raise Invalid(f"There is no stored hook with the SHA-256 {hook.sha256}: name a hook of `stoker hook list`.")
    return artifact


def _to_option(artifact: Artifact) -> dict[str, Any]:
    return {
        "name": artifact.name,
        "version": artifact.version,
        "url": f"{STORED_HOOKS_PATH}{artifact.sha256}",
        "sha256": artifact.sha256,
    }


def new_config(
    tx: Tx,
    project_id: str,
    *,
    name: Any = None,
    group: Any = None,
    config: Any = None,
    inputs: Any = None,
    outputs: Any = None,
    options: Any = None,
    id: str | None = None,
    may_be_owned: bool = False,
) -> tuple[Config, str]:
    """
    Store a new config. Return the config and its rendered form. Raises Invalid for values that Heat does not store.

    If ``config`` is the text of a catalog entry, the config has the entry's group, inputs, outputs and options.
    ``id``: that of an imported config. ``may_be_owned``: whether Stoker deletes a derived config with its deployment.
    """
    if options is not None and not isinstance(options, Mapping):
        raise Invalid(f"options must be a map, not {type(options).__name__}")
    own = {
        "group": _text(group, "group"),
        "config": config,
        "inputs": schema.inputs(inputs),
        "outputs": schema.outputs(outputs),
        "options": options or {},
    }
    fields = expand_entry(own)
    if fields is not own:
        fields = {**fields, "inputs": schema.inputs(fields["inputs"]), "outputs": schema.outputs(fields["outputs"])}
    check_options(fields["options"], fields["group"])
    CheckSettings.of(fields["options"])
    new = Config(
        id=id or str(uuid4()),
        project_id=project_id,
        name=_text(name, "name"),
        group=fields["group"],
        config=fields["config"],
        inputs=fields["inputs"],
        outputs=fields["outputs"],
        options=resolve_hook(tx, project_id, fields["options"]),
        created_at=tx.now,
    )
    if may_be_owned and new.is_derived:
        new = replace(new, is_owned=True)
    return new, configs.add(tx, new)


def expand_entry(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config's fields, merged with the catalog entry that is its content, if it is one. Raises Invalid."""
    if not entry.is_entry_text(fields["config"]):
        return fields
    document = read(fields["config"], "Catalog entry", MAX_TEMPLATE)
    return entry.merge(entry.parse(document), fields) if entry.is_document(document) else fields


def expand_known(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a config's properties merged with the catalog entry in them, if there is one. Raises Invalid."""
    if weigh([value for name, value in properties.items() if name in _FIELDS])[1]:
        return properties
    return expand_entry(properties) if "config" in properties else properties


def delete_config(tx: Tx, id: str, project_id: str) -> None:
    """Delete a config. Raises EntityNotFound, and ResourceInUse while a deployment or schedule uses it."""
    configs.lock(tx, id)
    configs.get(tx, id, project_id)
    if configs.in_use(tx, id):
        raise ResourceInUse(f"The software config ({id}) is used by a deployment: delete that first.")
    schedule = triggers.schedule_using(tx, id)
    if schedule is not None:
        raise ResourceInUse(
            f"The software config ({id}) is used by the schedule {schedule.name!r} ({schedule.id}): delete or change"
            " that first."
        )
    configs.delete(tx, id)


def source_inputs(
    inputs: tuple[Mapping[str, Any], ...],
) -> tuple[tuple[Mapping[str, Any], ...], dict[str, Any]]:
    """Split the inputs of a derived config into declarations and values, without those specific to one deployment."""
    declared = [entry for entry in inputs if not entry["name"].startswith(DEPLOY_PREFIX)]
    without_values = tuple({name: part for name, part in entry.items() if name != "value"} for entry in declared)
    return without_values, {entry["name"]: entry["value"] for entry in declared if "value" in entry}


def _text(value: Any, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise Invalid(f"{name} must be a string, not {type(value).__name__}")
    if len(value) > 255 or "\0" in value:
        raise Invalid(f"{name} must be at most 255 characters, without NUL")
    return value
