"""
Hook of the group ``salt``: applies states without a master, with the inputs as minion options and as pillar.

The config is the text of an SLS file, or a map of states. ``SALT_MINION_CONFIG`` names the minion's own configuration
(default ``/etc/salt/minion``), ``HEAT_SALT_CMD`` the command. Templates read an input as ``opts['NAME']`` or
``pillar['NAME']``. The inputs are in a file of the run's directory, because a command line is public.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any, Dict, List

from stoker_agent.hook_contract import Change, HookRun, Result, write_file

TOOLS = ("salt-call",)
_MINION = "/etc/salt/minion"
#: The line of Salt's log at the beginning of a state. Salt does not log the number of all states.
_STATE = re.compile(r"\[INFO .*\] Running state \[(?P<name>.*)\] at time [0-9:.]+$")


def apply(run: HookRun) -> Result:
    """Apply the states."""
    return _apply(run, [])


def check(run: HookRun) -> Result:
    """Compare the server with the states."""
    return _apply(run, ["test=True"])


preview = check


def _apply(run: HookRun, arguments: List[str]) -> Result:
    states = run.working / "states"
    text = run.config if isinstance(run.config, str) else json.dumps(run.config or {})
    write_file(states / f"{run.id}.sls", text)
    begun = itertools.count(1)

    def report(line: bytes) -> bool:
        """Report the state that begins with this line of the log, if one does."""
        match = _STATE.search(line.decode("utf-8", "replace"))
        if match is not None:
            run.report_progress(None, f"state {next(begun)}: {match['name']}")
        return False

    with run.temporary("salt.json") as target:
        argv = [os.environ.get("HEAT_SALT_CMD", "salt-call"), "--local", "--config-dir", str(_configure(run, states))]
        argv += ["--out", "json", "--out-file", str(target), "--log-level", "warning", "--retcode-passthrough"]
        argv += ["--log-file", "/dev/stdout", "--log-file-level", "info"]
        argv += ["--state-output", "changes", "state.sls", run.id, *arguments]
        try:
            environment = {"heat_outputs_path": str(run.outputs_path)}
            code = run.call(argv, environment, folder=run.working, passes=report)
        finally:
            for name in ("minion", "pillar"):
                shutil.rmtree(str(run.working / name))  # they contain the inputs
        returned = _read(target)
    print(json.dumps(returned, indent=2))
    if not isinstance(returned, dict):
        return Result(code or 1, changed=False, reason="; ".join(map(str, returned or ("salt returned nothing",))))
    changes = _changes(returned)
    failed = any(change.outcome == "failed" for change in changes)
    values = {"return": returned, "retcode": code, **{name: data for name, data in returned.items()}}
    declared = {item["name"] for item in run.entry.get("outputs") or ()}
    return Result(
        (code or 1) if failed else 0,
        {name: value for name, value in values.items() if name in declared},
        changed=any(change.outcome == "changed" for change in changes),
        changes=changes,
    )


def _configure(run: HookRun, states: Path) -> Path:
    """Write the configuration of a minion without a master and return its directory."""
    own = Path(os.environ.get("SALT_MINION_CONFIG", _MINION))
    folder = run.working / "minion"
    write_file(folder / "minion", own.read_bytes() if own.is_file() else b"")
    settings: Dict[str, Any] = {
        **run.inputs,
        "file_client": "local",
        "file_roots": {"base": [str(states)]},
        "pillar_roots": {"base": [str(run.working / "pillar")]},
    }
    write_file(folder / "minion.d" / "zz-stoker.conf", json.dumps(settings))  # JSON is YAML, too
    write_file(run.working / "pillar" / "top.sls", json.dumps({"base": {"*": ["inputs"]}}))
    write_file(run.working / "pillar" / "inputs.sls", "#!json\n" + json.dumps(run.inputs))
    return folder


def _read(target: Path) -> Any:
    """Return what the states returned: a map by state, or a list of errors."""
    try:
        return json.loads(target.read_text(encoding="utf-8")).get("local")
    except (OSError, ValueError, AttributeError):
        return []


def _changes(returned: Dict[str, Any]) -> List[Change]:
    changes = []
    for id, data in sorted(returned.items(), key=lambda item: _order(item[1])):
        if not isinstance(data, dict):
            continue
        name = f"{data.get('__id__', id)}: {data.get('name', '')}"
        if data.get("result") is False:
            changes.append(Change(name, "failed", str(data.get("comment", ""))))
        elif data.get("changes") or data.get("result") is None:
            changes.append(Change(name, "changed", json.dumps(data.get("changes"))))
    return changes


def _order(data: Any) -> int:
    return int(data.get("__run_num__", 0)) if isinstance(data, dict) else 0
