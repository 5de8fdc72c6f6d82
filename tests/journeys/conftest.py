from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.agents import OwnAgent
from support.server import LOCAL_SERVERS, Served, served
from support.templates import template

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def stoker(tmp_path, database_url) -> Iterator[Served]:
    """A Stoker with local servers, on each kind of database."""
    with served(tmp_path, LOCAL_SERVERS, database=database_url) as running:
        yield running


@dataclass
class StackSite:
    """One stack on one machine with a real agent, driven by the command line."""

    stoker: Served
    agent: OwnAgent
    folder: Path

    @property
    def server(self) -> str:
        return self.agent.spoken.name

    @property
    def name(self) -> str:
        return f"s-{self.server}"

    def template(self, **resources: Any) -> str:
        """Write a template and return its path."""
        path = self.folder / "t.json"
        path.write_text(json.dumps(template(resources)))
        return str(path)

    def stack(self, verb: str, *words: str, check: bool = True, **resources: Any) -> str:
        """Run ``stoker stack``, with a template if there are resources. Return what it printed."""
        template = ("-t", self.template(**resources)) if resources else ()
        done = self.stoker.run("stack", verb, self.name, *template, *words, check=check)
        return done.stdout + done.stderr
