"""
The contract of heat-agents, as one table over every hook of both: inputs, outputs, codes and files.

The hooks of heat-agents 13 and of Stoker receive the same config under Stoker's agent. A
stand-in records what each tool receives. The differences are deliberate: a missing tool is a failure, files with inputs
are removed, DELETE removes containers, and the first failing container counts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hooks.conftest import Hook, run_installed
from stoker_agent.programs import list_builtin

pytestmark = pytest.mark.slow

ID = "1f0e7c52-0000-4000-8000-000000000001"
#: Records one call of a tool: its arguments, variables, directory, and the content of files among its arguments.
_RECORDER = """#!/bin/sh
call="$RECORD/$(ls "$RECORD" | wc -l)"
mkdir -p "$call/files"
printf '%s\\n' "$@" > "$call/argv"
env > "$call/env"
pwd > "$call/pwd"
outputs="${heat_outputs_path:-${FACTER_heat_outputs_path:-}}"
for word; do
    file="${word#@}"
    [ ! -f "$file" ] || cp "$file" "$call/files/"
    [ ! -f "${word#--env-file=}" ] || cp "${word#--env-file=}" "$call/files/"
    [ "$file" = "$word" ] || outputs=$(sed 's/.*"heat_outputs_path": "\\([^"]*\\)".*/\\1/' "$file")
done
[ -z "$outputs" ] || printf 'from the tool' > "$outputs.answer"
case "$1" in ps | inspect) exit 0 ;; esac
echo "out of the tool"
echo "error of the tool" >&2
exit "${CODE:-0}"
"""


@dataclass(frozen=True)
class Call:
    """One recorded call of a tool."""

    argv: list[str]
    environment: dict[str, str]
    folder: str
    files: dict[str, str]


@dataclass
class Run:
    """What a hook reported, and what its tool received."""

    report: dict[str, Any]
    calls: list[Call]
    folder: Path

    @property
    def last(self) -> Call:
        return self.calls[-1]


@dataclass(frozen=True)
class Case:
    """A hook, the config of its run, and what must follow. ``code`` is the tool's exit code, ``reported`` the run's."""

    name: str
    group: str
    config: Any
    check: Callable[[Run], None]
    tool: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    code: int = 0
    reported: int = 0
    #: Whether the tool can write outputs. None if only Stoker's hook tells the tool where.
    has_outputs: bool | None = True


def _script(run: Run) -> None:
    assert run.last.argv == [f"{run.last.environment['HEAT_SCRIPT_WORKING']}/{ID}"]
    assert run.last.files[ID].startswith("#!/bin/sh\n")
    assert run.last.environment["color"] == "green"
    assert json.loads(run.last.environment["map"]) == {"a": [1]}


def _ansible(run: Run) -> None:
    argv = [word for word in run.last.argv if not word.startswith("/")]
    assert argv[:2] == ["-i", "localhost,"]
    assert [run.last.argv[run.last.argv.index(flag) + 1] for flag in ("--tags", "--skip-tags", "--module-path")] == [
        *("a,b", "c", "/modules")
    ]
    assert run.last.files[f"{ID}_playbook.yaml"] == "- hosts: all\n"
    variables = json.loads(run.last.files[f"{ID}_variables.json"])
    assert variables.pop("heat_outputs_path")
    assert variables == {"color": "green", "map": {"a": [1]}, "heat_config_id": ID}
    assert run.last.argv[run.last.argv.index("--extra-vars") + 1].endswith(f"/{ID}_variables.json")


def _puppet(run: Run) -> None:
    facts = run.last.environment
    assert (facts["FACTER_color"], facts["FACTER_deploy_config_name"]) == ("green", "app")
    assert facts["FACTER_fqdn"]
    assert facts["FACTER_heat_outputs_path"]
    argv = run.last.argv
    assert argv[:4] == ["apply", "--color", "false", "--detailed-exitcodes"]
    assert argv[argv.index("--logdest") + 1] == "console"
    assert argv[argv.index("--modulepath") + 1] == "/modules"
    assert argv[argv.index("--tags") + 1] == "a,b"
    assert {"--debug", "--verbose"} <= set(argv)
    assert argv[-1].endswith(f"/{ID}.pp")
    assert run.last.files[f"{ID}.pp"] == "notify { 'x': }"
    data = run.folder / "hieradata" / "heat_config_app.json"
    assert json.loads(data.read_text()) == {"color": "green"}
    assert data.stat().st_mode & 0o777 == 0o600


def _no_facts(run: Run) -> None:
    assert "FACTER_color" not in run.last.environment
    assert "FACTER_deploy_config_name" not in run.last.environment


def _chef(run: Run) -> None:
    argv = run.last.argv
    assert (argv[:2], argv[3]) == (["-z", "--config"], "-j")
    (node,) = [json.loads(text) for name, text in run.last.files.items() if name.endswith(".json")]
    assert node == {"color": "green", "map": {"a": [1]}, "run_list": ["recipe[app]"]}
    client = run.last.files["client.rb"].splitlines()
    assert {"local_mode true", "chef_zero.enabled true", "log_location STDOUT", "environment 'production'"} <= set(
        client
    )
    paths = dict(line.split(" ", 1) for line in client if "_path" in line)
    kitchen = {"cookbook_path": "cookbooks", "role_path": "roles", "environment_path": "environments"}
    assert {name: paths[name] for name in kitchen} == {name: f"'/kitchen/{value}'" for name, value in kitchen.items()}
    assert str(Path(argv[4]).parent) == paths["node_path"].strip("'")


def _docker(run: Run) -> None:
    calls = [call.argv for call in run.calls if call.argv[0] in ("run", "exec")]
    first = ["run", "--name", "db", "--label", "deploy_stack_id=web/1", "--label", "deploy_resource_name=app"]
    labels = ["--label", f"config_id={ID}", "--label", "container_name=db", "--label", "managed_by=docker-cmd"]
    flags = ["--detach=true", "--env-file=/etc/db.env", "--env=A=b", "--net=host", "--pid=host", "--privileged=true"]
    assert calls[0][: len(first) + len(labels)] == first + labels
    (start,) = [call for call in run.calls if call.argv[0] == "run" and "db" in call.argv]
    in_file = [f"--env={line}" for line in start.files.get("environment", "").splitlines()]
    rest = [word for word in start.argv[len(first) + len(labels) :] if not word.endswith("/environment")]
    rest = in_file + rest  # Stoker's hook keeps the variables off the command line
    assert sorted(rest[:9]) == sorted([*flags, "--restart=always", "--user=nobody", "--volume=/a:/b"])
    assert rest[9:] == ["box:1", "sleep", "5"]
    assert calls[1] == ["exec", "--user=root", "db", "true", "a b"]
    assert calls[2][2] == "once"
    assert "--detach=true" not in calls[2]


def _compose(run: Run) -> None:
    (up,) = [call for call in run.calls if "up" in call.argv]
    assert up.argv[:3] == ["up", "-d", "--no-build"]
    assert Path(up.folder).name == "app", "Compose names the project after its directory"
    assert Path(up.folder, "web.env").read_text() == "COLOR=green\n"
    assert Path(up.folder, "web.env").stat().st_mode & 0o777 == 0o600


def _cfn(run: Run) -> None:
    assert run.last.argv == [""]
    metadata = json.loads((run.folder / "cfn" / "last_metadata").read_text())
    assert metadata == {"AWS::CloudFormation::Init": {"config": {"files": {}}}}


def _apply_config(run: Run) -> None:
    assert run.last.argv == [""]


def _json(run: Run) -> None:
    text = (run.folder / "deep" / "a.json").read_text()
    assert text == '{\n    "a": [\n        true\n    ],\n    "b": 1\n}'


def _hiera(run: Run) -> None:
    data = run.folder / "hieradata"
    head = f"---\n:backends:\n  - json\n:json:\n  :datadir: {data}\n:hierarchy:\n"
    assert (run.folder / "hiera.yaml").read_text().lstrip("\n") == head + "  - node\n  - common\n"
    assert (data / "common.json").read_text() == '{\n    "x": 1\n}'
    assert [(path.stat().st_mode & 0o777) for path in (run.folder / "hiera.yaml", data / "common.json")] == [0o600] * 2


_SCRIPT = '#!/bin/sh\nexec "$RECORDER" "$0"\n'
_BOTH = {"color": "green", "map": {"a": [1]}}
_ANSIBLE = {"tags": "a,b", "skip_tags": "c", "modulepath": "/modules"}
_PUPPET = {
    **{"enable_hiera": True, "modulepath": "/modules", "tags": "a,b"},
    **{"enable_debug": True, "enable_verbose": True},
}
_CONTAINERS = {
    "db": {
        **{"image": "box:1", "command": "sleep 5", "start_order": 1, "environment": ["A=b"], "volumes": ["/a:/b"]},
        **{"env_file": "/etc/db.env", "net": "host", "pid": "host", "privileged": True},
        **{"restart": "always", "user": "nobody"},
    },
    "setup": {"action": "exec", "start_order": 2, "command": ["db", "true", "a b"], "user": "root"},
    "once": {"image": "box:1", "start_order": 3, "detach": False},
}
_OWNER = {"deploy_stack_id": "web/1", "deploy_resource_name": "app"}

CASES = [
    Case("script", "script", _SCRIPT, _script, "recorder", _BOTH),
    Case("script fails", "script", _SCRIPT, _script, "recorder", _BOTH, code=3, reported=3),
    Case("ansible", "ansible", "- hosts: all\n", _ansible, "ansible-playbook", _BOTH, _ANSIBLE),
    Case("ansible fails", "ansible", "- hosts: all\n", _ansible, "ansible-playbook", _BOTH, _ANSIBLE, 2, 2),
    Case("puppet", "puppet", "notify { 'x': }", _puppet, "puppet", {"color": "green"}, _PUPPET),
    Case("puppet changes", "puppet", "notify { 'x': }", _puppet, "puppet", {"color": "green"}, _PUPPET, 2, 0),
    Case("puppet fails", "puppet", "notify { 'x': }", _puppet, "puppet", {"color": "green"}, _PUPPET, 6, 6),
    Case("puppet without facts", "puppet", "", _no_facts, "puppet", {"color": "green"}, {"enable_facter": False}),
    Case(
        *("chef", "chef", '["recipe[app]"]', _chef, "chef-client"),
        {**_BOTH, "environment": "production", "deploy_action": "CREATE"},
        {"kitchen_path": "/kitchen"},
    ),
    Case("chef fails", "chef", "[]", lambda _: None, "chef-client", code=4, reported=4),
    Case("docker-cmd", "docker-cmd", _CONTAINERS, _docker, "docker", _OWNER, has_outputs=False),
    Case("docker-cmd in text", "docker-cmd", json.dumps(_CONTAINERS), _docker, "docker", _OWNER, has_outputs=False),
    Case(
        *("docker-cmd fails", "docker-cmd", {"db": {"image": "box:1", "exit_codes": [0, 3]}}, lambda _: None, "docker"),
        **{"inputs": _OWNER, "code": 5, "reported": 5, "has_outputs": False},
    ),
    Case(
        *(
            "docker-cmd accepts",
            "docker-cmd",
            {"db": {"image": "box:1", "exit_codes": [0, 3]}},
            lambda _: None,
            "docker",
        ),
        **{"inputs": _OWNER, "code": 3, "reported": 0, "has_outputs": False},
    ),
    Case(
        *("docker-compose", "docker-compose", {"web": {"image": "box:1", "env_file": "./web.env"}}, _compose),
        "docker-compose",
        {"env_files": str([{"file_name": "./web.env", "content": "COLOR=green\n"}])},
        has_outputs=False,
    ),
    Case("cfn-init", "cfn-init", {"config": {"files": {}}}, _cfn, "cfn-init", has_outputs=None),
    Case(
        "cfn-init in text",
        "cfn-init",
        '{"config": {"files": {}}}',
        _cfn,
        "cfn-init",
        code=1,
        reported=1,
        has_outputs=None,
    ),
    Case("apply-config", "apply-config", "", _apply_config, "os-apply-config", code=1, reported=1, has_outputs=False),
    Case("json-file", "json-file", {"FOLDER/deep/a.json": {"b": 1, "a": [True]}}, _json, has_outputs=False),
    Case(
        *("hiera", "hiera", {"hierarchy": ["node", "common"], "datafiles": {"common": {"x": 1}}}, _hiera),
        has_outputs=False,
    ),
]


def entry_of(case: Case, folder: Path) -> dict[str, Any]:
    config = json.loads(json.dumps(case.config).replace("FOLDER", str(folder)))
    return {
        **{"id": ID, "name": "app", "group": case.group, "creation_time": "2026-01-01T00:00:00Z"},
        **{"config": config, "options": dict(case.options), "outputs": [{"name": "answer"}, {"name": "none"}]},
        "inputs": [{"name": name, "type": "Json", "value": value} for name, value in case.inputs.items()],
    }


def environment_of(case: Case, folder: Path) -> dict[str, str]:
    """Return the variables for a run in ``folder``, with the stand-in first in PATH."""
    record = folder / "record"
    record.mkdir()
    upper = case.group.upper().replace("-", "_")
    # Where the hook reads a variable with the tool's path, a run that fails uses it.
    is_named = case.code and case.group in ("ansible", "apply-config", "cfn-init", "puppet")
    tool = folder / "bin" / ("renamed" if is_named else case.tool or "none")
    tool.parent.mkdir()
    tool.write_text(_RECORDER)
    tool.chmod(0o755)
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HEAT_", "STOKER_"))},
        **{"PATH": f"{tool.parent}:{os.environ['PATH']}", "RECORD": str(record), "RECORDER": str(tool)},
        **{"CODE": str(case.code), f"HEAT_{upper}_WORKING": str(folder / "working")},
        **({f"HEAT_{upper}_CMD": str(tool)} if is_named else {}),
        f"HEAT_{upper}_OUTPUTS": str(folder / "outputs"),
        "HEAT_PUPPET_HIERA_DATADIR": str(folder / "hieradata"),
        "HEAT_PUPPET_LOGDIR": str(folder / "logs"),
        "HEAT_HIERA_CONFIG": str(folder / "hiera.yaml"),
        "HEAT_HIERA_ELEMENT_CHECK_CMD": "echo empty",
        "HEAT_CFN_INIT_LAST_METADATA_DIR": str(folder / "cfn"),
    }


def upstream_hook(release: Path, group: str, folder: Path) -> Path:
    """Return heat-agents' hook as the executable of its group."""
    source = release / f"heat-config-{group}" / "install.d" / f"hook-{group}.py"
    target = folder / "hooks" / group
    target.parent.mkdir()
    target.write_text(source.read_text().replace("#!/usr/bin/env python3", f"#!{sys.executable}", 1))
    target.chmod(0o755)
    return target


def run_own(case: Case, folder: Path) -> dict[str, Any]:
    """Run Stoker's hook as its agent does."""
    outcome = Hook(case.group, folder, environment_of(case, folder)).run(entry_of(case, folder))
    return {"deploy_stdout": outcome.stdout, "deploy_stderr": outcome.stderr, **outcome.report}


def run_under_stoker(hook: Path, case: Case, folder: Path) -> dict[str, Any]:
    """Run an installed hook as Stoker's agent does."""
    return run_installed(entry_of(case, folder), hook.parent, folder / "runs" / ID, environment_of(case, folder))


def calls_in(record: Path) -> list[Call]:
    calls = []
    for path in sorted(record.iterdir(), key=lambda path: int(path.name)):
        variables = (line.split("=", 1) for line in (path / "env").read_text().splitlines() if "=" in line)
        files = {file.name: file.read_text() for file in (path / "files").iterdir()}
        folder = (path / "pwd").read_text().strip()
        calls.append(Call((path / "argv").read_text().split("\n")[:-1], dict(variables), folder, files))
    return calls


@pytest.mark.parametrize("is_own", [True, False], ids=["own hook", "upstream's hook"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_hooks_of_both_agents_keep_one_contract(case, is_own, heat_agents, tmp_path):
    if is_own:
        report = run_own(case, tmp_path)
    else:
        report = run_under_stoker(upstream_hook(heat_agents, case.group, tmp_path), case, tmp_path)
    assert report["deploy_status_code"] == case.reported
    if case.tool:
        assert "out of the tool\n" in report["deploy_stdout"]
        assert "error of the tool\n" in report["deploy_stderr"]
    has_outputs = is_own if case.has_outputs is None else case.has_outputs
    assert report.get("answer") == ("from the tool" if has_outputs else None)
    assert "none" not in report
    case.check(Run(report, calls_in(tmp_path / "record"), tmp_path))


#: Configs of hooks that fail for another reason without any.
_CONFIGS = {
    **dict.fromkeys(("json-file", "hiera"), 5),
    **{name: {"a": {}} for name in ("docker-cmd", "docker-compose")},
    **{"chef": "[]", "ansible": "- {}", "python": "x = 1", "kubelet": {"containers": [{"name": "a", "image": "b"}]}},
}


@pytest.mark.parametrize("hook", sorted(set(list_builtin()) - {"script", "reboot"}), indirect=True)
def test_a_tool_or_setting_that_is_missing_is_a_failure_with_its_reason(hook, tmp_path):
    hook.environment.update(PATH=str(tmp_path), HEAT_CFN_INIT_LAST_METADATA_DIR=str(tmp_path / "cfn"))
    hook.environment["HEAT_PUPPET_HIERA_DATADIR"] = str(tmp_path / "hiera")
    outcome = hook.run(hook.entry(_CONFIGS.get(hook.group, "")))
    assert outcome.code != 0
    assert outcome.report.get("deploy_status_reason") or outcome.stderr
