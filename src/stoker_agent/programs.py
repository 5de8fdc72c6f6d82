"""Maps a config to a program: finds the hook of its group, builds the command, parses the result."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from stoker_agent import hooks
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


def available(own: Path) -> List[str]:
    """Return the groups that this server can run."""
    names = {module.name for module in pkgutil.iter_modules(hooks.__path__)}
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
    if not name or not any(module.name == name for module in pkgutil.iter_modules(hooks.__path__)):
        looked = ", ".join(str(path) for path in (own, *FOLDERS))
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
    return _own("script", {**entry, "config": text}, working)


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


def _own(name: str, config: Mapping[str, Any], folder: Path) -> Program:
    hook = importlib.import_module(f"stoker_agent.hooks.{name}")
    outputs = folder / "out"
    try:
        return Program(
            argv=hook.command(config, folder),
            environment=hook.environment(config, outputs),
            stdin=b"",
            stdout="stdout",
            finish=lambda _: dict(hook.read_outputs(config, outputs)),
        )
    except ValueError as error:
        raise CannotRun(str(error)) from None


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
