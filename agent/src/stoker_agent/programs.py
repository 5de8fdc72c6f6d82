"""Maps a config to a program: finds the hook of its group, builds the command, parses the result."""

from __future__ import annotations

import functools
import importlib
import json
import os
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

import stoker_agent
from stoker_agent import hook_contract, hooks
from stoker_agent.files import open_trusted, write
from stoker_agent.hook_contract import HookError, HookRun, read_outputs
from stoker_agent.reports import clip_text
from stoker_agent.runs import without_source

#: Directories of installed hooks, searched after the agent's own directory.
FOLDERS = (
    Path("/etc/stoker/hooks.d"),
    Path("/usr/libexec/heat-config/hooks"),
    Path("/var/lib/heat-config/hooks"),
)

#: The file in a run's directory for the standard output of external hooks, which is their result.
ANSWER = "answer"
#: Largest result in bytes. Longer standard output is reported as output.
LONGEST_ANSWER = 16 * 1024 * 1024


class Folders(NamedTuple):
    """The directories of one run."""

    #: The agent's files: the entry, the output, the result.
    run: Path
    #: The files that the run's processes read and write. The directory and its files may belong to another user.
    working: Path
    #: What hooks keep between runs.
    state: Path

    @classmethod
    def of(cls, folder: Path) -> Folders:
        """Return the directories of a run in ``folder`` that executes as the agent's user."""
        return cls(folder, folder, folder.parents[1] / "hooks")


class Program(NamedTuple):
    """A process to start. ``finish`` receives the exit code and returns the values to report besides the output."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    stdin: bytes
    #: The file for standard output, in the run's directory.
    stdout: str
    #: The directory of the process's own files.
    working: Path
    finish: Callable[[int], Dict[str, Any]]


def inputs(config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the config's input values by name. Invalid entries are ignored."""
    listed = config.get("inputs")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {entry["name"]: entry.get("value") for entry in entries if isinstance(entry.get("name"), str)}


def option(config: Mapping[str, Any], name: str) -> Any:
    """Return an option of the config, or None without it."""
    options = config.get("options")
    return options.get(name) if isinstance(options, dict) else None


def parse_seconds(value: Any, default: float = 0.0) -> float:
    """Return a number of seconds, not less than 0, from an input or a setting; ``default`` for anything else."""
    try:
        return max(0.0, float(value))
    except (TypeError, ValueError):
        return default


#: Starts a built-in hook as a child process. Arguments: the agent's archive or source directory, and the group.
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from stoker_agent.hook_contract import main; main(sys.argv[2])"


@functools.lru_cache(maxsize=None)
def _import_hooks() -> Mapping[str, Any]:
    """Return the modules of the built-in hooks by group."""
    names = [module.name for module in pkgutil.iter_modules(hooks.__path__)]
    return {name.replace("_", "-"): importlib.import_module(f"{hooks.__name__}.{name}") for name in sorted(names)}


def list_builtin() -> List[str]:
    """Return the groups of the built-in hooks."""
    return sorted(_import_hooks())


def available(own: Path) -> List[str]:
    """Return the groups that this server can run."""
    names = set(list_builtin())
    for folder in (own, *FOLDERS):
        try:
            names.update(path.name for path in folder.iterdir() if os.access(str(path), os.X_OK))
        except OSError:
            continue
    return sorted(names)


def program(entry: Mapping[str, Any], own: Path, folders: Folders, mode: str = hook_contract.APPLY) -> Program:
    """
    Return the program for a document's entry. Installed hooks take precedence over built-in ones.

    ``own`` is the agent's hook directory, ``folders`` those of the run, ``mode`` what the hook does (one of
    ``hook_contract.MODES``). Raises HookError, with code ``hook_contract.UNSUPPORTED`` if the hook does not know modes.
    """
    config, name = without_source(_part(entry)), group_name(entry)
    executable = _executable(name, own)
    if executable is not None:
        return _external(executable, config, folders, mode)
    if name not in _import_hooks():
        looked = ", ".join(str(each) for each in (own, *FOLDERS))
        raise HookError(f"No hook for group {config.get('group')!r} on this server (looked in {looked})")
    return _own(name, config, folders, mode)


def group_name(entry: Mapping[str, Any]) -> str:
    """Return the group of the config that runs, as a hook's file is named. Raises HookError."""
    return re.sub(r"[^A-Za-z0-9_-]", "", str(_part(entry).get("group") or ""))


def on_cancel(entry: Mapping[str, Any], folder: Path) -> Optional[Program]:
    """
    Return the program for the config's ``on_cancel`` script, with the config's inputs, or None without a script.

    A run that did not apply the config has nothing to clean up. Raises HookError.
    """
    if entry.get("mode") not in (None, hook_contract.APPLY):
        return None
    text = option(entry, "on_cancel")
    if text is None or text == "":
        return None
    working = folder / "on-cancel"
    working.mkdir(mode=0o700, exist_ok=True)
    return _direct("script", {**entry, "config": text}, working)


def resumes(entry: Mapping[str, Any], own: Path) -> bool:
    """Whether an interrupted run of the entry starts again: its config requests it, or its built-in hook does."""
    return inputs(entry).get("deploy_on_interrupt") == "RERUN" or has_fact(entry, own, "RESUMES")


def has_fact(entry: Mapping[str, Any], own: Path, name: str) -> bool:
    """Whether the entry uses a built-in hook that states a fact of this name. ``own``: the agent's hook directory."""
    group = str(entry.get("group") or "")
    return bool(getattr(_import_hooks().get(group), name, False)) and _executable(group, own) is None


def list_tools() -> Dict[str, Sequence[str]]:
    """Return, by group, the programs of which a built-in hook needs one."""
    return {group: hook.TOOLS for group, hook in _import_hooks().items() if hasattr(hook, "TOOLS")}


def _part(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the config that runs: the entry, or the part of a component that handles the action. Raises HookError."""
    if entry.get("group") != "component":
        return entry
    action, body = inputs(entry).get("deploy_action"), entry.get("config")
    for part in (body.get("configs") or ()) if isinstance(body, dict) else ():
        if action in (part.get("actions") or ()):
            return {**entry, "config": part.get("config"), "group": part.get("tool")}
    raise HookError(f"The component has no config for the action {action}")


def _executable(name: str, own: Path) -> Optional[Path]:
    for folder in (own, *FOLDERS):
        path = folder / name
        if name and path.is_file() and os.access(str(path), os.X_OK):
            return path
    return None


def _own(group: str, config: Mapping[str, Any], folders: Folders, mode: str) -> Program:
    """
    Return the program for a built-in hook: a child process that runs the hook's function for the mode.

    To apply a config, the process of a hook with the function ``command`` is the config's program itself, which starts
    sooner.
    """
    if mode == hook_contract.APPLY and hasattr(_import_hooks()[group], "command"):
        return _direct(group, config, folders.working)
    result = folders.working / "hook-result.json"
    return Program(
        argv=[sys.executable, "-I", "-c", _CHILD, str(Path(stoker_agent.__file__).parents[1]), group],
        environment={
            hook_contract.RESULT_FILE: str(result),
            hook_contract.STATE: str(folders.state),
            hook_contract.MODE: mode,
        },
        stdin=json.dumps(config).encode(),
        stdout="stdout",
        working=folders.working,
        finish=lambda code: _read_result(result, code),
    )


def _read_result(path: Path, code: int) -> Dict[str, Any]:
    """Return the result of a hook's process. A process without a result has failed, whatever its exit code."""
    try:
        with open_trusted(path) as file:
            values: Dict[str, Any] = json.loads(file.read())
        path.unlink()  # differences may contain secrets
    except FileNotFoundError:
        return {"deploy_status_code": code or 1, "deploy_status_reason": "the hook ended without a result"}
    return values


def _direct(group: str, config: Mapping[str, Any], folder: Path) -> Program:
    """Return the program of a hook whose work is one process. Raises HookError."""
    outputs = folder / "out"
    argv, environment = _import_hooks()[group].command(HookRun(config, folder, folder, outputs))
    return Program(
        argv=argv,
        environment=environment,
        stdin=b"",
        stdout="stdout",
        working=folder,
        finish=lambda _: dict(read_outputs(config, outputs)),
    )


def _external(executable: Path, config: Mapping[str, Any], folders: Folders, mode: str) -> Program:
    """
    Return the program for an installed hook, which follows the contract of heat-agents.

    The hook reads the config from standard input and writes the result to standard output, both as JSON. A hook of
    heat-agents knows no modes and would apply the config, so only a hook that names the mode's variable gets a mode
    other than ``apply``. Raises HookError.
    """
    if mode != hook_contract.APPLY and hook_contract.MODE.encode() not in executable.read_bytes():
        reason = f"the hook {executable} does not support {mode}: it does not use the variable {hook_contract.MODE}"
        raise HookError(reason, hook_contract.UNSUPPORTED)
    if folders.run in executable.parents and folders.working != folders.run:
        # The delivered hook is only for the agent's own user.
        copy = folders.working / "delivered" / executable.name
        write(copy, executable.read_bytes(), 0o500, folder_mode=0o700)
        executable = copy
    return Program(
        argv=[str(executable)],
        environment={hook_contract.MODE: mode},
        stdin=json.dumps(config).encode(),
        stdout=ANSWER,
        working=folders.working,
        finish=lambda code: _answer(folders.run / ANSWER, code),
    )


def _answer(path: Path, code: int) -> Dict[str, Any]:
    text = clip_text(path)
    if not text.strip() and code == 0:
        return {"deploy_status_code": 0}
    if path.stat().st_size > LONGEST_ANSWER:
        return {"deploy_stdout": text, "deploy_status_code": code}
    content = path.read_text(encoding="utf-8", errors="replace")
    # The hook docker-cmd of heat-agents prints its tool's output before the result.
    for start in (0, content.rfind('{"deploy_')):
        try:
            answer = json.loads(content[max(start, 0) :])
        except ValueError:
            continue
        if isinstance(answer, dict):
            return {"deploy_status_code": code, **answer}
    return {"deploy_stdout": text, "deploy_status_code": code}
