"""Entries of the catalog on a test machine: each runs as a deployment does, by the agent's hook ``python``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.catalog import entry as entries
from stoker.catalog import shipped
from stoker.hot.text import read
from support.machine_hooks import run_hook
from support.machines import Machine


@dataclass
class Catalog:
    """The hook of the entries on the machine. ``folder`` is for files of this host."""

    machine: Machine
    folder: Path

    def run(self, name: str, mode: str = "apply", *, fails: bool = False, **values: Any) -> dict[str, Any]:
        """Run version 1 of an entry as a deployment, and return its report. ``fails``: it must fail."""
        text = shipped.find_entry(name, 1)
        assert text is not None
        entry = entries.parse(read(text, "Catalog entry", 1_000_000))
        facts = {"deploy_stack_id": "stack", "deploy_resource_name": name, "deploy_action": "UPDATE"}
        inputs = [{"name": key, "value": value} for key, value in {**values, **facts}.items()]
        config = {"id": name, "group": entry.group, "config": entry.source(), "inputs": inputs}
        report, stdout, stderr = run_hook(self.machine, self.folder, "python", config, mode=mode)
        assert bool(report["deploy_status_code"]) is fails, (report, stdout, stderr)
        return {"deploy_stdout": stdout, "deploy_stderr": stderr, **report}

    def journey(self, name: str, **values: Any) -> dict[str, Any]:
        """Compare, apply, apply again and compare again. Return the report of the first application."""
        assert self.run(name, "check", **values)["deploy_changed"] is True
        first = self.run(name, **values)
        assert first["deploy_changed"] is True
        again = self.run(name, **values)
        assert (again["deploy_changed"], again["deploy_changes"]) == (False, []), again
        assert self.run(name, "check", **values)["deploy_changed"] is False
        return first

    def undo(self, name: str) -> None:
        """Undo an entry. A second time, nothing is left to do."""
        assert self.run(name, "undo")["deploy_changed"] is True
        assert self.run(name, "undo")["deploy_changed"] is False

    def is_active(self, unit: str) -> bool:
        return self.machine.run(["systemctl", "is-active", unit], check=False).stdout == "active\n"

    def fetch(self, url: str) -> str:
        script = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=30).read().decode(), end='')"
        return self.machine.run(["python3", "-c", script, url]).stdout


def items(report: Mapping[str, Any]) -> list[str]:
    """Return what a run changed, or would change."""
    return [change["item"] for change in report["deploy_changes"]]
