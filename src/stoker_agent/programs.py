"""Maps a config to a program: finds the hook of its group, builds the command, parses the result."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from stoker_agent import hook_contract, hooks
from stoker_agent.hook_contract import HookError, HookRun
from stoker_agent.limits import clip_text

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


class CannotRun(Exception):
    """The config cannot run. The text is reported as the reason."""


class Program(NamedTuple):
    """A process to start. ``finish`` receives the exit code and returns the values to report besides the output."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    stdin: bytes
    #: The file for standard output, in the run's directory.
    stdout: str
    finish: Callable[[int], Dict[str, Any]]


def inputs(config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the config's input values by name. Invalid entries are ignored."""
    listed = config.get("inputs")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    return {entry["name"]: entry.get("value") for entry in entries if isinstance(entry.get("name"), str)}


#: Starts a built-in hook as a child process. Arguments: the agent's archive or source directory, and the group.
_CHILD = "import sys; sys.path.insert(0, sys.argv[1]); from stoker_agent.hook_contract import main; main(sys.argv[2])"


def list_builtin() -> List[str]:
    """Return the groups of the built-in hooks."""
    return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(hooks.__path__))


def available(own: Path) -> List[str]:
    """Return the groups that this server can run."""
    names = set(list_builtin())
    for folder in (own, *FOLDERS):
        try:
            names.update(path.name for path in folder.iterdir() if os.access(str(path), os.X_OK))
        except OSError:
            continue
    return sorted(names)


def program(entry: Mapping[str, Any], own: Path, folder: Path) -> Program:
    """
    Return the program for a document's entry. Installed hooks take precedence over built-in ones.

    ``own`` is the agent's hook directory, ``folder`` the run's directory. Raises CannotRun.
    """
    config = _component(entry) if entry.get("group") == "component" else entry
    group = str(config.get("group") or "")
    name = re.sub(r"[^A-Za-z0-9_-]", "", group)
    executable = _executable(name, own)
    if executable is not None:
        return _external(executable, config, folder)
    if name not in list_builtin():
        looked = ", ".join(str(each) for each in (own, *FOLDERS))
        raise CannotRun(f"No hook for group {group!r} on this server (looked in {looked})")
    return _own(name, config, folder)


def on_cancel(entry: Mapping[str, Any], folder: Path) -> Optional[Program]:
    """
    Return the program for the config's ``on_cancel`` script, with the config's inputs, or None without a script.

    Raises CannotRun.
    """
    options = entry.get("options")
    text = options.get("on_cancel") if isinstance(options, dict) else None
    if text is None or text == "":
        return None
    working = folder / "on-cancel"
    working.mkdir(mode=0o700, exist_ok=True)
    return _direct("script", {**entry, "config": text}, working)


def resumes(entry: Mapping[str, Any], own: Path) -> bool:
    """Whether an interrupted run of the entry starts again: its config requests it, or its built-in hook does."""
    if inputs(entry).get("deploy_on_interrupt") == "RERUN":
        return True
    group = str(entry.get("group") or "")
    if group not in list_builtin() or _executable(group, own) is not None:
        return False
    return bool(getattr(_hook(group), "RESUMES", False))


def _component(entry: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the part of a component that handles the requested action."""
    action = inputs(entry).get("deploy_action")
    body = entry.get("config")
    for part in (body.get("configs") or ()) if isinstance(body, dict) else ():
        if action in (part.get("actions") or ()):
            return {**entry, "config": part.get("config"), "group": part.get("tool")}
    raise CannotRun(f"The component has no config for the action {action}")


def _executable(name: str, own: Path) -> Optional[Path]:
    for folder in (own, *FOLDERS):
        path = folder / name
        if name and path.is_file() and os.access(str(path), os.X_OK):
            return path
    return None


def _hook(group: str) -> Any:
    return importlib.import_module(f"stoker_agent.hooks.{hook_contract.module_name(group)}")


def _own(group: str, config: Mapping[str, Any], folder: Path) -> Program:
    """
    Return the program for a built-in hook: a child process that runs the hook's ``apply``.

    The process of a hook with the function ``command`` is the config's program itself, which starts sooner.
    """
    if hasattr(_hook(group), "command"):
        return _direct(group, config, folder)
    result = folder / "hook-result.json"
    return Program(
        argv=[sys.executable, "-I", "-c", _CHILD, str(Path(hooks.__path__[0]).parents[1]), group],
        environment={hook_contract.RESULT_FILE: str(result), hook_contract.STATE: str(folder.parents[1] / "hooks")},
        stdin=json.dumps(config).encode(),
        stdout="stdout",
        finish=lambda code: _read_result(result, code),
    )


def _read_result(path: Path, code: int) -> Dict[str, Any]:
    """Return the result of a hook's process. A process without a result has failed, whatever its exit code."""
    try:
        values: Dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {"deploy_status_code": code or 1, "deploy_status_reason": "the hook ended without a result"}
    return values


def _direct(group: str, config: Mapping[str, Any], folder: Path) -> Program:
    """Return the program of a hook whose work is one process. Raises CannotRun."""
    outputs = folder / "out"
    try:
        argv, environment = _hook(group).command(HookRun(config, folder, folder, outputs))
    except HookError as error:
        raise CannotRun(str(error)) from None
    return Program(
        argv=argv,
        environment=environment,
        stdin=b"",
        stdout="stdout",
        finish=lambda _: dict(hook_contract.read_outputs(config, outputs)),
    )


def _external(executable: Path, config: Mapping[str, Any], folder: Path) -> Program:
    """
    Return the program for an installed hook, which follows the contract of heat-agents.

    The hook reads the config from standard input and writes the result to standard output, both as JSON.
    """
    return Program(
        argv=[str(executable)],
        environment={},
        stdin=json.dumps(config).encode(),
        stdout=ANSWER,
        finish=lambda code: _answer(folder / ANSWER, code),
    )


def _answer(path: Path, code: int) -> Dict[str, Any]:
    text = clip_text(path)
    if not text.strip() and code == 0:
        return {"deploy_status_code": 0}
    try:
        if path.stat().st_size > LONGEST_ANSWER:
            return {"deploy_stdout": text, "deploy_status_code": code}
        answer = json.loads(path.read_text(encoding="utf-8", errors="replace"))
        if isinstance(answer, dict):
            return {"deploy_status_code": code, **answer}
    except ValueError:
        pass
    return {"deploy_stdout": text, "deploy_status_code": code}
