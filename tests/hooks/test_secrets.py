"""No built-in hook shows a secret input on a command line, or in a file that others can read or that remains."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from stoker_agent.programs import list_builtin

pytestmark = pytest.mark.slow

#: Takes the place of every tool. Records command lines with the secret, and files with the secret that others can read,
#: then leaves the files that the real tool writes, with the modes of the usual umask.
_TOOL = """#!{python} -I
import json, os, pathlib, sys

os.umask(0o022)
record, root = pathlib.Path(os.environ["RECORD"]), pathlib.Path(os.environ["ROOT"])
secret = record.joinpath("secret").read_bytes()
leaks = []
for process in pathlib.Path("/proc").glob("[0-9]*"):
    try:
        words = process.joinpath("cmdline").read_bytes()
    except OSError:
        continue
    if secret in words:
        leaks.append("command line: %r" % words)
for path in root.rglob("*"):
    if path.is_file() and record not in path.parents and secret in path.read_bytes() and path.stat().st_mode & 0o077:
        leaks.append("mode %o: %s" % (path.stat().st_mode & 0o777, path))
name, argv = pathlib.Path(sys.argv[0]).name, sys.argv[1:]
record.joinpath("calls").open("a").write(name + "\\n")
record.joinpath("leaks").open("a").write("".join(leak + "\\n" for leak in leaks))

def write(path, text):
    with open(path, "a") as file:
        file.write(text)
    if os.stat(path).st_mode & 0o077:
        record.joinpath("leaks").open("a").write("the tool makes %s readable\\n" % path)

text = secret.decode()
if name == "ansible-playbook":
    line = json.dumps(dict(item="a", outcome="changed", diff=text))
    write(os.environ["STOKER_ANSIBLE_RESULTS"], line + "\\n")
if name == "puppet":
    (log,) = [word for word in argv if word.endswith("_log.json")]
    entry = dict(level="notice", message=text, source="/Stage[main]/A")
    write(log, json.dumps(entry) + "\\n,\\n")
    print("Info: noise\\nNotice: shown")
if name == "salt-call":
    write(argv[argv.index("--out-file") + 1], json.dumps(dict(local=dict(a=dict(result=True, changes=dict(a=text))))))
    write(argv[argv.index("--log-file") + 1], text)
if name == "chef-client":
    pathlib.Path(argv[argv.index("-j") + 1]).with_name("other.json").write_text(text)
if name == "os-apply-config":
    print("empty")
if name == "systemctl":
    print("ActiveState=active\\nNRestarts=0")
    sys.exit(argv == ["reboot"])
"""


@dataclass(frozen=True)
class Case:
    """A hook's run with a secret. ``SECRET`` and ``ROOT`` in the config and the inputs stand for their values."""

    group: str
    config: Any
    #: The tools that the hook calls.
    tools: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=lambda: {"password": "SECRET"})
    options: Mapping[str, Any] = field(default_factory=dict)
    #: Files that contain the secret after the run, as the hook's page says, with their modes.
    remains: Mapping[str, int] = field(default_factory=dict)
    code: int = 0


CASES = [
    Case("ansible", "- hosts: all\n", ("ansible-playbook",)),
    Case("puppet", "notify { 'x': }", ("puppet",)),
    Case(
        *("puppet", "notify { 'x': }", ("puppet",)),
        options={"enable_hiera": True, "enable_facter": False},
        remains={"hieradata/heat_config_app.json": 0o600},
    ),
    Case("salt", {"a": {"test.nop": []}}, ("salt-call",)),
    Case("chef", "[]", ("chef-client",)),
    Case(
        *("docker-compose", {"web": {"image": "box:1", "env_file": "web.env"}}, ("docker-compose",)),
        inputs={"env_files": [{"file_name": "web.env", "content": "PASSWORD=SECRET\n"}]},
        remains={"app/web.env": 0o600},
    ),
    Case(
        *("docker-cmd", {"web": {"image": "box:1", "environment": ["A=SECRET", "KEY=-\nSECRET"]}}, ("docker",)),
        inputs={"deploy_stack_id": "web/1", "deploy_resource_name": "app"},
    ),
    Case("cfn-init", {"config": {}}, ("cfn-init",)),
    Case("apply-config", None, ("os-apply-config",)),
    Case(
        *("hiera", {"datafiles": {"common": {"password": "SECRET"}}}, ("os-apply-config",)),
        remains={"hieradata/common.json": 0o600},
    ),
    Case("json-file", {"ROOT/app.json": {"password": "SECRET"}}, remains={"app.json": 0o644}),
    Case(
        *("kubelet", {"containers": [], "annotations": {"password": "SECRET"}}, ("docker",)),
        remains={"manifests/1f0e7c520000400.json": 0o600},
    ),
    Case("package", {"name": "stoker-test-none"}, ("apt-get", "dpkg-query")),
    Case(
        *("file", {"path": "ROOT/app.ini", "template": "password = ${password}\n", "mode": "0640"}),
        remains={"app.ini": 0o640},
    ),
    Case("service", {"name": "stoker-test-none", "wait": 0, "health": '"$TOOL"'}, ("systemctl", "journalctl", "tool")),
    Case("user", {"name": "stoker-test-none"}, ("useradd",)),
    Case(
        *("python", "import os, subprocess\ndef main(inputs):\n    subprocess.check_call([os.environ['TOOL']])\n"),
        ("tool",),
    ),
    Case("reboot", {}, ("systemctl",), code=1),
    Case("agent", None, code=1),  # from its sources, the agent does not replace itself
    Case("script", '#!/bin/sh\n"$TOOL"\n', ("tool",)),
]


def test_every_hook_is_in_the_table():
    assert {case.group for case in CASES} == set(list_builtin())


@pytest.mark.parametrize(
    ("case", "hook"),
    [(case, case.group) for case in CASES],
    indirect=["hook"],
    ids=lambda value: getattr(value, "group", ""),
)
def test_a_secret_is_on_no_command_line_and_in_no_public_file(case, hook, tmp_path):
    secret, record = f"s3cret-{secrets.token_hex(8)}", tmp_path / "record"
    record.mkdir()
    record.joinpath("secret").write_text(secret)
    for tool in case.tools:
        path = hook.tool(tool, _TOOL.replace("{python}", sys.executable))
        hook.environment["TOOL"] = str(path)
    places = {"HEAT_PUPPET_HIERA_DATADIR": "hieradata", "HEAT_KUBELET_MANIFESTS": "manifests"}
    places.update(HEAT_CFN_INIT_LAST_METADATA_DIR="cfn", ROOT="", RECORD="record", SALT_MINION_CONFIG="minion")
    hook.environment.update({name: str(tmp_path / place) for name, place in places.items()})

    def fill(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("SECRET", secret).replace("ROOT", str(tmp_path)))

    outcome = hook.run(hook.entry(fill(case.config), (), case.options, **fill(case.inputs)))
    assert outcome.code == case.code, outcome
    calls = record.joinpath("calls").read_text().split() if case.tools else []
    assert set(calls) >= set(case.tools) - {"journalctl"}
    assert not case.tools or record.joinpath("leaks").read_text() == ""
    remaining = {
        str(path.relative_to(tmp_path)): path.stat().st_mode & 0o777
        for path in tmp_path.rglob("*")
        if path.is_file() and record not in path.parents and secret.encode() in path.read_bytes()
    }
    suffixes = {
        next((name for name in case.remains if path.endswith(name)), path): mode for path, mode in remaining.items()
    }
    assert suffixes == dict(case.remains)
