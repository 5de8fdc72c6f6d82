"""
Hook of the group ``docker-cmd``: runs containers that a map describes, in ``start_order``.

Containers of earlier configs of the same deployment are removed first; on DELETE all of them. A repetition of a config
starts only what does not run. ``HEAT_DOCKER_CMD`` replaces the command.
"""

from __future__ import annotations

import secrets
from typing import Any, Dict, List, Mapping, Tuple

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_list, container_engine

TOOLS = ("docker", "podman")
_MANAGED = "managed_by=docker-cmd"


def apply(run: HookRun) -> Result:
    """Remove containers of earlier runs, then run the containers of the map that this config has not started."""
    containers = {} if run.is_removal or not run.config else run.mapping()
    changes = _remove_others(run)
    present = _statuses(run)
    first_failure = 0
    for number, name in enumerate(
        sorted(containers, key=lambda name: _settings(containers, name).get("start_order", 0))
    ):
        settings = _settings(containers, name)
        run.report_progress(100 * number // len(containers), f"container {name}")
        is_exec = settings.get("action") == "exec"
        if is_exec and present and not changes:
            continue
        if name in present:
            if _is_as_wanted(present[name][1], settings):
                continue
            _remove(run, present[name][0])
        code = run.call(_exec(run, settings)) if is_exec else _start(run, name, settings)
        is_good = code in settings.get("exit_codes", [0])
        changes.append(Change(name, "changed" if is_good else "failed"))
        if not is_good:
            first_failure = first_failure or code or 1
    return Result(first_failure, changed=bool(changes), changes=changes)


def undo(run: HookRun) -> Result:
    """Remove all containers of the deployment."""
    changes = _remove_others(run)
    return Result.of(changes)


def check(run: HookRun) -> Result:
    """Compare the running containers with the map."""
    containers = run.mapping() if run.config else {}
    wanted = {name for name in containers if _settings(containers, name).get("action", "run") == "run"}
    present = _statuses(run)
    changes = [
        Change(name, diff="not running" if name in present else "missing")
        for name in sorted(wanted)
        if name not in present or not _is_as_wanted(present[name][1], containers[name])
    ]
    changes += [Change(name, diff="not in the config") for name in sorted(set(present) - wanted)]
    return Result.of(changes)


preview = check


def _settings(containers: Mapping[str, Any], name: str) -> Dict[str, Any]:
    settings = containers[name]
    if not isinstance(settings, dict):
        raise HookError(f"the container {name} must be a map of settings")
    return settings


def _statuses(run: HookRun) -> Dict[str, Tuple[str, str]]:
    """Return the containers that this config has started, by their names in the map: real name and status."""
    rows = _list(run, '{{.Label "container_name"}}\t{{.Names}}\t{{.Status}}', f"label=config_id={run.id}")
    return {name: (real_name, status) for name, real_name, status in (row.split("\t", 2) for row in rows)}


def _is_as_wanted(status: str, settings: Mapping[str, Any]) -> bool:
    """Whether the container runs. One that is not detached runs once: it must have ended with a good exit code."""
    if settings.get("detach", True):
        return status.startswith("Up") and "(Paused)" not in status
    return any(status.startswith(f"Exited ({code})") for code in settings.get("exit_codes", [0]))


def _list(run: HookRun, form: str, *filters: str) -> List[str]:
    argv = [container_engine(), "ps", "-a", "--format", form]
    for condition in filters:
        argv += ["--filter", condition]
    code, text = run.read(argv)
    if code:
        raise HookError(f"{container_engine()} cannot list containers: exit {code}", code)
    return text.split("\n")[:-1]


def _remove_others(run: HookRun) -> List[Change]:
    """Remove this deployment's containers of other configs; in a removal, all of them."""
    owner = [f"label={name}={value}" for name, value in _owner(run).items()]
    form = '{{.Names}}\t{{.Label "config_id"}}'
    removed = []
    for line in _list(run, form, f"label={_MANAGED}", *owner):
        name, _, config_id = line.partition("\t")
        if run.is_removal or config_id != run.id:
            _remove(run, name)
            removed.append(Change(name, diff="removed"))
    return removed


def _owner(run: HookRun) -> Dict[str, Any]:
    """Return the labels that distinguish the containers of the deployment."""
    owner = {name: run.inputs.get(name) for name in ("deploy_stack_id", "deploy_resource_name")}
    if not any(owner.values()) and run.entry.get("deployment_id"):
        owner["deployment_id"] = run.entry["deployment_id"]
    return owner


def _remove(run: HookRun, name: str) -> None:
    if run.call([container_engine(), "rm", "-f", name]):
        raise HookError(f"cannot remove the container {name}")


def _start(run: HookRun, name: str, settings: Mapping[str, Any]) -> int:
    """
    Start a container and return the exit code.

    Its environment variables may contain secrets, so they are in a file, which overrides earlier files as ``--env``
    would. Such a file cannot contain a value with several lines: the container engine then reads its own variable.
    """
    argv = _arguments(run, name, settings)
    entries = as_list(settings.get("environment") or [], f"{name}: environment")
    lines = [entry for entry in entries if entry and "\n" not in entry]
    variables = dict(entry.split("=", 1) for entry in entries if "\n" in entry and "=" in entry)
    with run.temporary("environment", "".join(f"{line}\n" for line in lines)) as file:
        flags = [f"--env-file={file}"] if lines else []
        flags += [f"--env={variable}" for variable in variables]
        return run.call([*argv, *flags, str(settings.get("image", "")), *_command(settings)], variables)


def _arguments(run: HookRun, name: str, settings: Mapping[str, Any]) -> List[str]:
    """Return the command that starts a container, without its environment variables, image and program."""
    labels = {**_owner(run), "config_id": run.id, "container_name": name}
    argv = [container_engine(), "run", "--name", _unique(run, name)]
    for label in [*(f"{label}={value}" for label, value in labels.items()), _MANAGED]:
        argv += ["--label", label]
    if settings.get("detach", True):
        argv.append("--detach=true")
    repeated = {"env_file": "--env-file", "volumes": "--volume", "volumes_from": "--volumes-from"}
    for key, flag in repeated.items():
        argv += [f"{flag}={value}" for value in as_list(settings.get(key) or [], f"{name}: {key}") if value]
    for key in ("net", "pid", "privileged", "restart", "user"):
        if key in settings:
            argv.append(f"--{key}={_word(settings[key])}")
    return argv


def _exec(run: HookRun, settings: Mapping[str, Any]) -> List[str]:
    """Return the command that runs a program in a container; the first word of its command names the container."""
    flags = [f"--{key}={_word(settings[key])}" for key in ("privileged", "user") if key in settings]
    command = _command(settings)
    if not command:
        raise HookError("a container with the action exec needs a command that begins with a container's name")
    names = _list(run, "{{.Names}}", f"label=container_name={command[0]}", f"label=config_id={run.id}")
    return [container_engine(), "exec", *flags, names[0] if names else command[0], *command[1:]]


def _unique(run: HookRun, name: str) -> str:
    """Return a container name that no container has."""
    taken = set(_list(run, "{{.Names}}"))
    unique = name
    while unique in taken:
        unique = f"{name}-{secrets.token_hex(4)}"
    return unique


def _command(settings: Mapping[str, Any]) -> List[str]:
    command = settings.get("command") or []
    return command.split() if isinstance(command, str) else [str(word) for word in command]


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
