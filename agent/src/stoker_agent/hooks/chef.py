"""
Hook of the group ``chef``: runs ``chef-client`` in local mode with the inputs as node attributes.

The config is a run list in JSON. Options: ``kitchen``, a Git repository with cookbooks, roles and environments, and
``kitchen_path``, where to clone it. The input ``environment`` selects Chef's environment.
"""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any, List

from stoker_agent.hook_contract import HookError, HookRun, Result, write_file

TOOLS = ("chef-client",)


def apply(run: HookRun) -> Result:
    """Clone the kitchen if the config names one, then converge the run list."""
    run_list = _run_list(run)
    kitchen = Path(str(run.options.get("kitchen_path") or run.state / "kitchen"))
    if run.options.get("kitchen"):
        code = _clone(run, str(run.options["kitchen"]), kitchen)
        if code:
            return Result(code, reason=f"cannot clone the kitchen {run.options['kitchen']}")
    node = run.working / "node" / f"{socket.getfqdn()}.json"
    attributes = {name: value for name, value in run.user_inputs.items() if name != "environment"}
    write_file(node, json.dumps({**attributes, "run_list": run_list}, indent=4))
    client = run.write("client.rb", _client(run, kitchen, node.parent))
    argv = ["chef-client", "-z", "--config", str(client), "-j", str(node)]
    try:
        code = run.call(argv, {"heat_outputs_path": str(run.outputs_path)}, folder=run.working)
    finally:
        shutil.rmtree(str(node.parent))  # Chef stores the node beside the file; its attributes may contain secrets
    return Result(code)


def _run_list(run: HookRun) -> List[Any]:
    try:
        run_list = json.loads(run.config) if isinstance(run.config, str) else run.config
    except ValueError as error:
        raise HookError(f"the config of group chef must be a run list in JSON: {error}") from None
    if not isinstance(run_list, list):
        raise HookError("the config of group chef must be a run list in JSON")
    return run_list


def _clone(run: HookRun, repository: str, kitchen: Path) -> int:
    """Clone the kitchen; an update clones a fresh one. Return Git's exit code."""
    if run.action == "UPDATE":
        shutil.rmtree(str(kitchen), ignore_errors=True)
    if kitchen.exists() and any(kitchen.iterdir()):
        return 0
    return run.call(["git", "clone", "--quiet", "--", repository, str(kitchen)], {"GIT_TERMINAL_PROMPT": "0"})


def _client(run: HookRun, kitchen: Path, node: Path) -> str:
    settings = {
        "cookbook_path": kitchen / "cookbooks",
        "role_path": kitchen / "roles",
        "environment_path": kitchen / "environments",
        "node_path": node,
    }
    lines = ["log_level :info", "log_location STDOUT", "local_mode true", "chef_zero.enabled true"]
    lines += [f"{name} {_quoted(str(value))}" for name, value in settings.items()]
    if run.inputs.get("environment"):
        lines.append(f"environment {_quoted(str(run.inputs['environment']))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
