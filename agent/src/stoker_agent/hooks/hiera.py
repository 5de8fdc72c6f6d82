"""
Hook of the group ``hiera``: writes Hiera's hierarchy and data files for Puppet.

The config is a map ``{"hierarchy": [...], "datafiles": {name: data}}``. ``HEAT_PUPPET_HIERA_DATADIR`` and
``HEAT_HIERA_CONFIG`` replace the directory of the data and the path of the hierarchy.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import List, Tuple

from stoker_agent import files
from stoker_agent.hook_contract import Change, HookError, HookRun, Result, as_list, write_file

_LEGACY = ["os-apply-config", "--key", "hiera.datafiles", "--type", "raw", "--key-default", "empty"]


def apply(run: HookRun) -> Result:
    """Write the files whose content differs. Refuses to run beside hieradata of os-apply-config."""
    _refuse_legacy(run)
    changes = _compare(run)
    for path, text in _files(run):
        if Change(str(path)) in changes:
            write_file(path, text)
            print(f"wrote {path}")
    return Result.of(changes)


def check(run: HookRun) -> Result:
    """Compare the files with the config."""
    return Result.of(_compare(run))


preview = check


def _refuse_legacy(run: HookRun) -> None:
    command = os.environ.get("HEAT_HIERA_ELEMENT_CHECK_CMD", " ".join(_LEGACY)).split()
    if not shutil.which(command[0]):
        return
    _, text = run.read(command)
    if text.strip() != "empty":
        raise HookError(
            f"os-apply-config manages hieradata on this server: {text.strip()}. Use this hook for all of it."
        )


def _files(run: HookRun) -> List[Tuple[Path, str]]:
    folder = Path(os.environ.get("HEAT_PUPPET_HIERA_DATADIR", "/etc/puppet/hieradata"))
    config = run.mapping()
    files = []
    if "hierarchy" in config:
        levels = "".join(f"  - {level}\n" for level in as_list(config["hierarchy"], "hierarchy"))
        text = f"---\n:backends:\n  - json\n:json:\n  :datadir: {folder}\n:hierarchy:\n{levels}"
        files.append((Path(os.environ.get("HEAT_HIERA_CONFIG", "/etc/puppet/hiera.yaml")), text))
    datafiles = config.get("datafiles") or {}
    if not isinstance(datafiles, dict):
        raise HookError("datafiles must be a map of names and data")
    for name, data in datafiles.items():
        files.append((folder / f"{name}.json", json.dumps(data, indent=4, sort_keys=True)))
    return files


def _compare(run: HookRun) -> List[Change]:
    return [Change(str(path)) for path, text in _files(run) if files.read(path) != text.encode()]
