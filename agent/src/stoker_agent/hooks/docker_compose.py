"""
Hook of the group ``docker-compose``: brings up the services of a Compose file, and removes them on DELETE.

The config is a Compose file as text or map. The input ``env_files`` is a list of ``{"file_name", "content"}``; each
file is written into the project's directory. Options: ``wait`` (until services are healthy) and ``wait_timeout`` in
seconds. ``HEAT_DOCKER_COMPOSE_CMD`` replaces the command.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_flag, container_engine, write_file

TOOLS = ("docker-compose", "docker")
#: What a dry run of Compose 2 would do.
_PENDING = re.compile(r"DRY-RUN MODE - +(\S+ \S+) +(Creating|Recreate|Starting|Stopping|Removing)")


def apply(run: HookRun) -> Result:
    """Create or update the project's services."""
    if run.is_removal:
        return undo(run)
    if not run.config:
        return Result(changed=False)
    project = _write_project(run)
    run.memory.remember("project", project.name)
    command = _command()
    before = _containers(run, command, project)
    argv = [*command, "up", "-d", "--no-build", "--remove-orphans"]
    if run.options.get("wait") is not None and as_flag(run.options["wait"], "wait"):
        argv += [
            "--wait",
            *(["--wait-timeout", str(run.options["wait_timeout"])] if "wait_timeout" in run.options else []),
        ]
    code = run.call(argv, folder=project)
    after = _containers(run, command, project)
    changes = [Change(name) for name in sorted(set(before) | set(after)) if before.get(name) != after.get(name)]
    return Result(code, changed=bool(changes), changes=changes)


def check(run: HookRun) -> Result:
    """Compare the running services with the Compose file: ``docker compose up --dry-run``. Needs Compose 2."""
    before = {path: path.read_bytes() if path.is_file() else None for path in _files(run)}
    argv = [*_command(), "--dry-run", "up", "-d", "--no-build", "--remove-orphans"]
    try:
        project = _write_project(run)
        code, text = run.read(["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", *argv], folder=project)
    finally:
        _restore(before)
    print(text, end="")
    pending: Dict[str, str] = {}
    for item, verb in _PENDING.findall(text):
        pending.setdefault(item, verb)
    return Result(code, changed=bool(pending), changes=[Change(item, diff=verb) for item, verb in pending.items()])


preview = check


def undo(run: HookRun) -> Result:
    """Stop and remove the project's services, and its directory."""
    project = _project(run)
    if not project.is_dir():
        return Result(changed=False)
    code = run.call([*_command(), "down", "--remove-orphans"], folder=project)
    if code == 0:
        shutil.rmtree(str(project))
        for item in run.memory.list("project"):
            run.memory.forget(item)
    return Result(code, changed=True)


def _command() -> List[str]:
    """Return the command of Compose: its own program, or the plugin of docker."""
    named = os.environ.get("HEAT_DOCKER_COMPOSE_CMD")
    if named:
        return named.split()
    if shutil.which("docker-compose"):
        return ["docker-compose"]
    if shutil.which("docker"):
        return ["docker", "compose"]
    raise HookError("neither docker-compose nor docker is installed on this server, or in PATH", 127)


def _project(run: HookRun) -> Path:
    """Return the project's directory, whose name is that of the config, unless another deployment has it."""
    for item in run.memory.list("project"):
        return run.state / item.name
    id = str(run.entry.get("deployment_id") or run.id)
    is_taken = not run.entry.get("trigger_id") and run.memory.is_used("project", run.name)
    return run.state / (f"{run.name}-{id[:8]}" if is_taken else run.name)


def _files(run: HookRun) -> Dict[Path, str]:
    project = _project(run)
    files = {project / "docker-compose.yml": run.config if isinstance(run.config, str) else json.dumps(run.config)}
    for name, content in _env_files(run):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise HookError(f"env_files: {name!r} must be a path below the project's directory")
        files[project / name] = content
    return files


def _write_project(run: HookRun) -> Path:
    for path, content in _files(run).items():
        write_file(path, content)
    return _project(run)


def _restore(files: Dict[Path, Optional[bytes]]) -> None:
    """Undo the writes of a dry run."""
    for path, content in files.items():
        if content is not None:
            write_file(path, content)
        elif path.is_file():
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


def _env_files(run: HookRun) -> List[Tuple[str, str]]:
    value: Any = run.inputs.get("env_files") or []
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            try:
                value = ast.literal_eval(value)  # heat-agents passes a list as Python writes it
            except (ValueError, SyntaxError):
                raise HookError("env_files must be a list of maps with file_name and content") from None
    if not isinstance(value, list) or not all(
        isinstance(item, dict) and {"file_name", "content"} <= set(item) for item in value
    ):
        raise HookError("env_files must be a list of maps with file_name and content")
    return [(str(item["file_name"]), str(item["content"])) for item in value]


def _containers(run: HookRun, command: List[str], project: Path) -> Dict[str, str]:
    """Return the ids of the project's containers by name."""
    _, ids = run.read([*command, "ps", "-q"], folder=project)
    if not ids.strip():
        return {}
    code, text = run.read([container_engine(), "inspect", "--format", "{{.Name}} {{.Id}}", *ids.split()])
    return {} if code else dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
