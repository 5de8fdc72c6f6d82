"""
Hook of the group ``puppet``: applies a manifest with the inputs as facts, and as Hiera data if the config requests it.

Options: ``enable_facter`` (default true), ``enable_hiera``, ``modulepath``, ``tags``, ``enable_debug`` and
``enable_verbose``. ``HEAT_PUPPET_CMD`` and ``HEAT_PUPPET_HIERA_DATADIR`` replace the command and the directory.
"""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any, Dict, List, Optional

from stoker_agent.hook_contract import Change, HookRun, Result, as_flag, as_text, write_file

TOOLS = ("puppet",)
#: Exit codes of ``--detailed-exitcodes`` for changes, and for changes and failures.
_CHANGED, _BOTH = 2, 6
#: A line of ``--evaltrace``: the resource, its number and the number of all; old versions write no numbers.
_EVALUATION = re.compile(
    r"Info: (?P<resource>.+): (?:Evaluated in .*"
    r"|Starting to evaluate the resource(?: \((?P<number>\d+) of (?P<all>\d+)\))?)"
)
#: The beginning of the names of files with Hiera data.
_HIERA = "heat_config_"


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
    argv = [os.environ.get("HEAT_PUPPET_CMD", "puppet"), "apply", "--color", "false", "--detailed-exitcodes"]
    data = _hiera(run)
    try:
        facts = {**_facts(run), **(_hiera_facts(data) if data else {})}
        with run.temporary(f"{run.id}_log.json") as log:  # a file that Puppet makes is readable for all
            argv += ["--logdest", "console", "--logdest", str(log), "--evaltrace", *_options(run), *flags]
            code = run.call([*argv, str(manifest)], facts, folder=run.working, passes=lambda line: _report(run, line))
            return code, _read(log)
    finally:
        if data is not None and run.is_dry:
            data.unlink()  # only applied inputs stay on the machine


def _options(run: HookRun) -> List[str]:
    argv: List[str] = []
    for name in ("modulepath", "tags"):
        value = run.options.get(name)
        if value:
            argv += [f"--{name}", ",".join(value) if isinstance(value, list) else str(value)]
    for name in ("debug", "verbose"):
        if _is_set(run, f"enable_{name}", default=False):
            argv.append(f"--{name}")
    if not _is_detailed(run):
        argv += ["--log_level", "info"]  # the level of the lines with the progress
    return argv


def _is_detailed(run: HookRun) -> bool:
    """Return whether the config requests more of Puppet's output than notices."""
    return any(_is_set(run, f"enable_{name}", default=False) for name in ("debug", "verbose"))


def _report(run: HookRun, line: bytes) -> bool:
    """Report the progress that a line of Puppet's output states. Return whether the run's output shows the line."""
    text = line.decode("utf-8", "replace").rstrip("\n")
    match = _EVALUATION.fullmatch(text)
    if match is None:
        return _is_detailed(run) or not text.startswith("Info: ")
    resource = match["resource"]
    if "Starting to evaluate" in text and resource.startswith("/Stage["):
        percent = min(99, 100 * (int(match["number"]) - 1) // int(match["all"])) if match["all"] else None
        run.report_progress(percent, resource)
    return False


def _is_set(run: HookRun, name: str, *, default: bool) -> bool:
    value = run.options.get(name)
    return default if value is None else as_flag(value, name)


def _facts(run: HookRun) -> Dict[str, str]:
    facts = {"FACTER_fqdn": socket.getfqdn(), "FACTER_heat_outputs_path": str(run.outputs_path)}
    if _is_set(run, "enable_facter", default=True):
        facts.update({f"FACTER_{name}": as_text(value) for name, value in run.inputs.items()})
    return facts


def _hiera(run: HookRun) -> Optional[Path]:
    """Write the inputs as Hiera data, if the config requests it. Return the file, which is another one in a dry run."""
    if not _is_set(run, "enable_hiera", default=False):
        return None
    folder = Path(os.environ.get("HEAT_PUPPET_HIERA_DATADIR", "/etc/puppet/hieradata"))
    name = f"{run.name}_{run.mode}" if run.is_dry else run.name
    return write_file(folder / f"{_HIERA}{name}.json", json.dumps(run.inputs))


def _hiera_facts(data: Path) -> Dict[str, str]:
    return {"FACTER_deploy_config_name": data.stem[len(_HIERA) :]}


def _read(log: Path) -> List[Change]:
    """Return the changes and failures of resources from Puppet's JSON log."""
    text = log.read_text(encoding="utf-8", errors="replace").strip().rstrip(",")
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
