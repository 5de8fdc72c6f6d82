"""What an undo leaves on a server, through the command line and a real agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.agents import OwnAgent, enrolled_agent
from support.server import Served
from support.templates import define, on, template

pytestmark = pytest.mark.slow

STEPS = {
    "stoker_catalog_version": 1,
    "name": "texts",
    "version": 1,
    "description": "A file",
    "group": "python",
    "library": "steps/1",
    "inputs": [{"name": name, "description": "an input"} for name in ("path", "content")],
    "config": "def apply(steps):\n    import os, pwd\n    steps.file(steps.inputs['path'], steps.inputs['content'],"
    " owner=pwd.getpwuid(os.geteuid()).pw_name)\n",
    "options": {"undo": True},
}
#: The same work by the hook of the group file, and by steps of the catalog.
KINDS = ("file", "steps")


@dataclass
class Site:
    """Files on a machine, managed by the deployments of a stack, which the command line drives."""

    stoker: Served
    agent: OwnAgent
    file: Path
    kind: str

    @property
    def server(self) -> str:
        return self.agent.spoken.name

    def path(self, name: str) -> Path:
        return self.agent.work / name

    def config(self) -> dict[str, Any]:
        if self.kind == "steps":
            return {"config": "".join(f"{key}: {json.dumps(value)}\n" for key, value in STEPS.items())}
        inputs = [{"name": "path"}, {"name": "content"}]
        return {"group": "file", "options": {"undo": True}, "inputs": inputs}

    def write(self, verb: str, **paths: str) -> None:
        """Create or update the stack: a deployment for each name, which writes the name into the file of that path."""
        resources = {"config": define("OS::Heat::SoftwareConfig", **self.config())}
        for name, path in paths.items():
            values = {"path": str(self.path(path)), "content": f"{name}\n"}
            resources[name] = on(self.server, input_values=values)
        self.file.write_text(json.dumps(template(resources)))
        self.stack(verb, "-t", str(self.file))

    def stack(self, verb: str, *words: str) -> None:
        """Run ``stoker stack`` on the stack, which has the name of the server."""
        self.stoker.run("stack", verb, self.server, "--wait", *words)

    def delete(self) -> None:
        self.stack("delete", "--yes")

    def texts(self, *names: str) -> list[str | None]:
        return [path.read_text() if (path := self.path(name)).exists() else None for name in names]


@pytest.fixture(params=KINDS)
def site(stoker: Served, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Site]:
    with enrolled_agent(tmp_path / "agent", stoker, tmp_path.name) as agent:
        stoker.until(lambda: stoker.json("server", "show", tmp_path.name)["status"] == "ONLINE")
        yield Site(stoker, agent, tmp_path / "t.json", request.param)


def test_deployments_without_a_stack_whose_configs_have_one_name_undo_their_own_work(site: Site) -> None:
    for name in ("a", "b"):
        site.path(name).write_text(f"before {name}\n")
    created = site.stoker.heat("POST", "/software_configs", {"name": "motd", **site.config()}).body
    ids = {}
    for name in ("a", "b"):
        words = ["--config", created["software_config"]["id"], "--server", site.server, "--wait"]
        words += ["-i", f"path={site.path(name)}", "-i", f"content={name}\n"]
        ids[name] = site.stoker.json("deployment", "create", *words)["id"]
    assert site.texts("a", "b") == ["a\n", "b\n"]
    for name, left in (("a", "b\n"), ("b", "before b\n")):
        site.stoker.run("deployment", "delete", ids[name], "--yes")
        site.stoker.until(
            lambda name=name: site.stoker.run("deployment", "show", ids[name], check=False).returncode != 0
        )
        assert site.texts("a", "b") == ["before a\n", left]


def test_triggers_with_the_same_and_another_path_change_nothing_of_the_deployments_undo(site: Site) -> None:
    for name in ("a", "b"):
        site.path(name).write_text(f"before {name}\n")
    site.write("create", d="a")
    site.path("a").write_text("drift\n")
    site.stoker.run("trigger", site.server, "d", "--follow")
    assert site.texts("a") == ["d\n"]
    site.stoker.run("trigger", site.server, "d", "-i", f"path={site.path('b')}", "--follow")
    assert site.texts("a", "b") == ["d\n", "d\n"]
    site.stoker.run("trigger", site.server, "d", "DELETE", "-i", f"path={site.path('b')}", "--follow", check=False)
    assert site.texts("a") == ["d\n"], "the undo of a trigger leaves the deployment's file"
    site.delete()
    assert site.texts("a", "b") == ["before a\n", "d\n"]


def test_a_file_that_moves_leaves_its_former_path_as_it_was(site: Site) -> None:
    for name in ("a", "b"):
        site.path(name).write_text(f"before {name}\n")
    site.write("create", d="a")
    site.write("update", d="b")
    assert site.texts("b") == ["d\n"]
    if site.kind == "file":
        assert site.texts("a") == ["before a\n"]
    site.delete()
    assert site.texts("a", "b") == ["before a\n", "before b\n"]


def test_two_deployments_that_exchange_their_paths_keep_both_files(site: Site) -> None:
    site.path("a").write_text("before a\n")
    site.write("create", d="a", e="b")
    site.write("update", d="b", e="a")
    assert site.texts("a", "b") == ["e\n", "d\n"]
    site.delete()
    assert site.texts("a", "b") == ["before a\n", None]


def test_a_renamed_resource_keeps_its_file_until_it_is_deleted(site: Site) -> None:
    site.path("a").write_text("before\n")
    site.write("create", old="a")
    site.file.write_text(site.file.read_text().replace('"old":', '"new":'))
    site.stack("update", "-t", str(site.file))
    assert site.texts("a") == ["old\n"]
    site.delete()
    assert site.texts("a") == ["before\n"]
