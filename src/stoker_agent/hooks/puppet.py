"""
Hook of the group ``puppet``: applies a manifest with the inputs as facts, and as Hiera data if the config requests it.

Options: ``enable_facter`` (default true), ``enable_hiera``, ``modulepath``, ``tags``, ``enable_debug`` and
``enable_verbose``. ``HEAT_PUPPET_CMD`` and ``HEAT_PUPPET_HIERA_DATADIR`` replace the command and the directory.
"""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any, Dict, List

from stoker_agent.hook_contract import Change, HookRun, Result, as_flag, as_text, write_file

#: Exit codes of ``--detailed-exitcodes`` for changes, and for changes and failures.
_CHANGED, _BOTH = 2, 6


def apply(run: HookRun) -> Result:
    """Apply the manifest. Exit codes that report successful changes become 0, as in heat-agents."""
    code, changes = _apply(run, [])
    return Result(0 if code in (0, _CHANGED) else code, changed=code in (_CHANGED, _BOTH), changes=changes)


def check(run: HookRun) -> Result:
    """Compare the server with the manifest: ``puppet apply --noop``, whose exit code is 0 even for differences."""
    code, changes = _apply(run, ["--noop", "--show_diff"])
    return Result(0 if code in (0, _CHANGED) else code, changed=bool(changes), changes=changes)


preview = check


def _apply(run: HookRun, flags: List[str]) -> "tuple[int, List[Change]]":
    manifest = run.write(f"{run.id}.pp", run.text())
    log = run.working / f"{run.id}_log.json"
    log.unlink(missing_ok=True)  # Puppet appends to the log of an interrupted run
    argv = [os.environ.get("HEAT_PUPPET_CMD", "puppet"), "apply", "--color", "false", "--detailed-exitcodes"]
    argv += ["--logdest", "console", "--logdest", str(log), *_options(run), *flags, str(manifest)]
    code = run.call(argv, {**_facts(run), **_hiera(run)}, folder=run.working)
    return code, _read(log)


def _options(run: HookRun) -> List[str]:
    argv: List[str] = []
    for name in ("modulepath", "tags"):
        value = run.options.get(name)
        if value:
            argv += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    for name in ("debug", "verbose"):
        if _is_set(run, f"enable_{name}", default=False):
            argv.append(f"--{name}")
    return argv


def _is_set(run: HookRun, name: str, *, default: bool) -> bool:
    value = run.options.get(name)
    return default if value is None else as_flag(value, name)


def _facts(run: HookRun) -> Dict[str, str]:
    facts = {"FACTER_fqdn": socket.getfqdn(), "FACTER_heat_outputs_path": str(run.outputs_path)}
    if _is_set(run, "enable_facter", default=True):
        facts.update({f"FACTER_{name}": as_text(value) for name, value in run.inputs.items()})
    return facts


def _hiera(run: HookRun) -> Dict[str, str]:
    """Write the inputs as Hiera data and return the fact that names the file."""
    if not _is_set(run, "enable_hiera", default=False):
        return {}
    folder = Path(os.environ.get("HEAT_PUPPET_HIERA_DATADIR", "/etc/puppet/hieradata"))
    write_file(folder / f"heat_config_{run.name}.json", json.dumps(run.inputs))
    return {"FACTER_deploy_config_name": run.name}


def _read(log: Path) -> List[Change]:
    """Return the changes and failures of resources from Puppet's JSON log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace").strip().rstrip(",")
    except FileNotFoundError:
        return []
    try:
        entries: List[Dict[str, Any]] = json.loads(text if text.endswith("]") else text + "]")
    except ValueError:
        return []
    changes: Dict[str, Change] = {}
    for entry in entries:
        source = str(entry.get("source") or "")
        if not source.startswith("/Stage[") or entry.get("level") not in ("notice", "err", "info"):
            continue
        if entry["level"] == "info" or not _is_event(str(entry.get("message"))):
            continue
        outcome = "failed" if entry["level"] == "err" else "changed"
        changes[source] = Change(source, outcome, str(entry.get("message")))
    return list(changes.values())


def _is_event(message: str) -> bool:
    """Return whether the message reports a property, and not the summary of a class or a triggered refresh."""
    return not message.startswith(("Would have triggered", "Triggered"))
