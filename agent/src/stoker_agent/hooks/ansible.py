"""
Hook of the group ``ansible``: runs a playbook on this server with the inputs as extra variables.

Options: ``tags``, ``skip_tags``, ``modulepath``, ``callback_plugins`` and ``inventory``, a path relative to the run's
directory. ``HEAT_ANSIBLE_CMD`` and ``HEAT_ANSIBLE_INVENTORY`` replace the command and the inventory.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Dict, List

from stoker_agent.hook_contract import Change, HookError, HookRun, Result, write_file

TOOLS = ("ansible-playbook",)
_LOCAL = "localhost,"
#: A play without ``hosts: localhost`` or ``connection: local`` would use SSH for the default inventory.
_LOCAL_ENVIRONMENT = {"ANSIBLE_TRANSPORT": "local"}
_RESULTS = "STOKER_ANSIBLE_RESULTS"

#: A callback plugin that writes one JSON line per task, because ansible-core contains no callback with JSON output.
_CALLBACK = """
import json
import os

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "stoker"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self._total = self._done = 0

    def v2_playbook_on_start(self, playbook):
        for play in playbook.get_plays():
            self._total += sum(len(tasks) for tasks in play.get_tasks())

    def v2_playbook_on_task_start(self, task, is_conditional):
        path = os.environ.get("STOKER_PROGRESS")
        if path:
            percent = min(99, 100 * self._done // self._total) if self._total else 0
            with open(path, "a") as file:
                file.write("%d %s\\n" % (percent, task.get_name().replace("\\n", " ")))
        self._done += 1

    def _record(self, result, outcome):
        data = result._result
        diffs = data.get("diff") or []
        texts = []
        for diff in diffs if isinstance(diffs, list) else [diffs]:
            if isinstance(diff, dict):
                texts.append(diff.get("prepared") or self._get_diff(diff))
        hidden = result._task.no_log
        entry = {"item": result._task.get_name(), "outcome": outcome, "diff": "" if hidden else "".join(texts)[:4096]}
        with open(os.environ["STOKER_ANSIBLE_RESULTS"], "a") as file:
            file.write(json.dumps(entry) + "\\n")

    def v2_runner_on_ok(self, result):
        if result._result.get("changed"):
            self._record(result, "changed")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        if not ignore_errors:
            self._record(result, "failed")

    def v2_runner_on_unreachable(self, result):
        self._record(result, "failed")
"""


def apply(run: HookRun) -> Result:
    """Run the playbook."""
    return _play(run, [])


def check(run: HookRun) -> Result:
    """Compare the server with the playbook."""
    return _play(run, ["--check", "--diff"])


preview = check


def _play(run: HookRun, flags: List[str]) -> Result:
    if not run.text():
        return Result(changed=False)
    playbook = run.write(f"{run.id}_playbook.yaml", run.text())
    variables = {**run.inputs, "heat_config_id": run.id, "heat_outputs_path": str(run.outputs_path)}
    argv = [os.environ.get("HEAT_ANSIBLE_CMD", "ansible-playbook"), "-i", _inventory(run), *_options(run), *flags]
    name = f"{run.id}_variables.json"  # as in heat-agents
    with run.temporary(name, json.dumps(variables)) as extra, run.temporary("results.jsonl") as results:
        argv += [str(playbook), "--extra-vars", f"@{extra}"]
        code = run.call(argv, _environment(run, results), folder=run.working)
        changes = _read(results)
    return Result(code, changed=any(change.outcome == "changed" for change in changes), changes=changes)


def _inventory(run: HookRun) -> str:
    own = run.options.get("inventory")
    return str(run.working / str(own)) if own else os.environ.get("HEAT_ANSIBLE_INVENTORY", _LOCAL)


def _options(run: HookRun) -> List[str]:
    flags = {"modulepath": "--module-path", "skip_tags": "--skip-tags", "tags": "--tags"}
    argv: List[str] = []
    for name, flag in flags.items():
        value = run.options.get(name)
        if value:
            argv += [flag, ",".join(value) if isinstance(value, list) else str(value)]
    return argv


def _environment(run: HookRun, results: Path) -> Dict[str, str]:
    plugins = write_file(run.working / "callback_plugins" / "stoker.py", _CALLBACK).parent
    folders = [str(plugins), *filter(None, [str(run.options.get("callback_plugins") or "")])]
    enabled = [*filter(None, [os.environ.get("ANSIBLE_CALLBACKS_ENABLED", "")]), "stoker"]
    environment = {
        "ANSIBLE_CALLBACK_PLUGINS": os.pathsep.join(folders),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join(enabled),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_RETRY_FILES_ENABLED": "0",
        # Ansible's own choice is the newest Python in PATH, which may lack the modules of the system's.
        "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable,
        _RESULTS: str(results),
    }
    if _inventory(run) == _LOCAL:
        environment.update(_LOCAL_ENVIRONMENT)
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        if os.environ.get(name):
            if "utf" not in os.environ[name].lower():
                environment["LC_ALL"] = "C.UTF-8"  # Ansible refuses to start in any other encoding
            return environment
    return {**environment, "LC_ALL": "C.UTF-8"}


def _read(results: Path) -> List[Change]:
    try:
        return [Change(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise HookError(f"cannot read the results of the tasks: {error}") from None
