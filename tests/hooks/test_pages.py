"""The page of each hook: its example is a stack, and the run with the real tool gives what the page says."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.conftest import Hook, run_installed
from stoker_agent.programs import list_builtin
from support.stacks import World
from support.tools import find_tool

PAGES = Path(__file__).parents[2] / "docs" / "hooks"
#: The directory in which examples write; tests replace it.
EXAMPLE_FOLDER = "/srv/app"
#: Files that the examples write below this directory, with their content.
INI = {"app.ini": "port = 8080\n"}
#: The examples are templates, like any other.
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
APP = json.dumps({"hosts": ["a.example.org", "b.example.org"], "port": 8080}, indent=4)


def example(group: str) -> Any:
    """Return the template of a page."""
    (block,) = [block for block in code_blocks(PAGES / f"{group}.md") if "heat_template_version" in block]
    return yaml.safe_load(block.replace("2021-04-16", '"2021-04-16"'))


def code_blocks(page: Path) -> list[str]:
    """Return the indented blocks of a page."""
    blocks = re.findall(r"(?:^    .*\n|^\n)+", page.read_text(), re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in blocks]


def promises(group: str) -> dict[str, str]:
    """Return the attributes that the page names with their values."""
    text = " ".join((PAGES / f"{group}.md").read_text().split())
    return dict(re.findall(r"The attribute `(\w+)` of the deployment is `([^`]+)`", text))


def entry_of(heat: World, template: Any) -> tuple[Any, dict[str, Any]]:
    """Create the stack and return it, and the entry that the agent of web1 receives."""
    stack = heat.create(template)
    ((_, body),) = heat.to_run(heat.resources(stack)["web1"].physical_id)
    return stack, json.loads(body)


def test_every_hook_has_a_page():
    assert sorted(page.stem for page in PAGES.glob("*.md")) == list_builtin()
    table = re.findall(r"^\| \[`([\w-]+)`\]", PAGES.with_suffix(".md").read_text(), re.MULTILINE)
    assert sorted(table) == list_builtin()


@ON_SQLITE
@pytest.mark.parametrize("group", list_builtin())
def test_the_example_of_a_page_is_a_stack_whose_run_reaches_the_hook(heat, group):
    stack, entry = entry_of(heat, example(group))
    assert entry["group"] == group
    values = {**promises(group), "deploy_status_code": 0}
    assert heat.signal(stack, "deployment", **values).status == "COMPLETE"
    assert heat.outputs(stack) == promises(group)


@pytest.mark.slow
@ON_SQLITE
@pytest.mark.parametrize(
    ("hook", "files"),
    [
        ("ansible", INI),
        ("file", INI),
        ("hiera", {"hieradata/common.json": '{\n    "app::port": 8080\n}'}),
        ("json-file", {"app.json": APP}),
        ("puppet", INI),
        ("python", {}),
        ("salt", INI),
        ("script", {}),
    ],
    indirect=["hook"],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_example_of_a_page_runs_with_the_real_tool(heat, hook, files, tmp_path, request):
    _provide(hook, request, tmp_path)
    folder = tmp_path / "example"
    folder.mkdir()
    template = json.loads(json.dumps(example(hook.group)).replace(EXAMPLE_FOLDER, str(folder)))
    stack, entry = entry_of(heat, template)
    outcome = hook.run(entry)
    assert outcome.code == 0, outcome
    assert outcome.changed in (None, True)
    assert {name: (folder / name).read_text() for name in files} == files
    assert heat.signal(stack, "deployment", **outcome.report).status == "COMPLETE"
    stated = {name: value.replace(EXAMPLE_FOLDER, str(folder)) for name, value in promises(hook.group).items()}
    assert {name: str(value) for name, value in heat.outputs(stack).items()} == stated


def _provide(hook: Hook, request: pytest.FixtureRequest, folder: Path) -> None:
    """Provide the tool of the hook and its directories."""
    if hook.group == "ansible":
        hook.environment["HEAT_ANSIBLE_CMD"] = str(request.getfixturevalue("ansible_playbook"))
    elif hook.group == "salt":
        hook.use_salt(request.getfixturevalue("salt_call"), folder)
    elif hook.group == "puppet":
        find_tool("puppet")
        hook.environment["HOME"] = str(folder)
    hook.environment["HEAT_PUPPET_HIERA_DATADIR"] = str(folder / "example" / "hieradata")
    hook.environment["HEAT_HIERA_CONFIG"] = str(folder / "example" / "hiera.yaml")


def test_the_hook_of_the_tutorial_applies_checks_and_undoes(tmp_path):
    blocks = code_blocks(PAGES.parent / "write-a-hook.md")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    hooks.joinpath("line").write_text(next(block for block in blocks if block.startswith("#!")))
    hooks.joinpath("line").chmod(0o755)
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    entry = {"id": "a", "group": "line", "config": {"path": str(path), "line": "192.0.2.7 db"}, "inputs": []}

    def run(mode: str) -> dict[str, Any]:
        return run_installed(entry, hooks, tmp_path, os.environ, mode)

    assert run("check")["deploy_changed"] is True
    assert path.read_text() == "127.0.0.1 localhost\n"
    assert run("apply")["lines"] == 2
    assert path.read_text() == "127.0.0.1 localhost\n192.0.2.7 db\n"
    assert run("check")["deploy_changes"] == run("apply")["deploy_changes"] == []
    assert run("undo")["deploy_changes"][0]["diff"] == "-192.0.2.7 db"
    assert path.read_text() == "127.0.0.1 localhost\n"
