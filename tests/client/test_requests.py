"""What commands send: each option is in the body of the request."""

import base64

import pytest

from client.site import EMPTY
from support.http_stub import Said

TIME = "2031-05-06T07:08:09Z"
TEMPLATE = "heat_template_version: 2021-04-16\nparameters: {size: {type: string, default: s}}\n"
SCRIPTED = """heat_template_version: 2021-04-16
parameters: {size: {type: string}, empty: {type: string}, key: {type: string}}
outputs: {o: {value: {get_file: go.sh}}}
"""
ENVIRONMENT = "parameters: {size: s}\n"
FILES = {"web.yaml": TEMPLATE, "scripted.yaml": SCRIPTED, "env.yaml": ENVIRONMENT, "go.sh": "echo", "key": "1\n2\n"}
NEVER = "0" * 32
TRIGGER, SERVERS, MANY = "/software_triggers", "/servers", "/enrollments"
BACKUP = {"stack": "app", "resource": "database", "action": "BACKUP"}
ONE, SEVERAL = {"download": "python3"}, {"download": "python3", "limit": 3, "labels": {}, "approval": False}
#: Words, the path of the last request with a body, and the body; CONFIG-ID and the like stand for ids.
SENT = [
    (
        "stack create new -t scripted.yaml -e env.yaml -P size=a=b -P empty= --parameter-file key=key --timeout 5"
        " --rollback --tags a,b",
        "/stacks",
        {
            "stack_name": "new", "template": SCRIPTED, "files": {"go.sh": "echo", "env.yaml": ENVIRONMENT},
            "environment_files": ["env.yaml"], "environment": {"parameters": {"size": "s"}},
            "parameters": {"size": "a=b", "empty": "", "key": "1\n2\n"}, "timeout_mins": 5, "disable_rollback": False,
            "tags": "a,b",
        },
    ),
    (
        "stack update web -t web.yaml -P size=l --rollback",
        "/stacks/web/STACK-ID",
        {"template": TEMPLATE, "files": {}, "parameters": {"size": "l"}, "disable_rollback": False},
    ),
    (
        "stack update web --existing --clear-parameter size --no-rollback",
        "/stacks/web/STACK-ID",
        {"files": {}, "parameters": {}, "clear_parameters": ["size"], "disable_rollback": True},
    ),
    ("trigger app database BACKUP", TRIGGER, BACKUP),
    ("trigger create app database BACKUP", TRIGGER, BACKUP),
    ("trigger -- app database BACKUP", TRIGGER, BACKUP),
    (
        "trigger --on db1 app -i a=b=c database --on db2",
        TRIGGER,
        {"stack": "app", "resource": "database", "servers": ["db1", "db2"], "input_values": {"a": "b=c"}},
    ),
    (
        "trigger app database BACKUP --label role=db --label site=b --input-file key=key --name n --require-window"
        " --allow-undeclared --max-concurrent 5 --max-fail-percentage 0 --canary 10% --timeout 60"
        " --signal-transport NO_SIGNAL",
        TRIGGER,
        {
            **BACKUP, "selector": "role=db and site=b", "input_values": {"key": "1\n2\n"}, "name": "n",
            "require_window": True, "allow_undeclared": True, "max_concurrent": 5, "max_fail_percentage": 0,
            "canary": "10%", "timeout": 60, "signal_transport": "NO_SIGNAL",
        },
    ),
    ("trigger --config setup --on db1", TRIGGER, {"config_id": "CONFIG-ID", "servers": ["db1"]}),
    (f"trigger create --deployment {NEVER} BACKUP", TRIGGER, {"deployment_id": NEVER, "action": "BACKUP"}),
    ("trigger create list database", TRIGGER, {"stack": "list", "resource": "database"}),
    ("trigger -- show database", TRIGGER, {"stack": "show", "resource": "database"}),
    (
        "schedule create app database BACKUP -i a=b --label role=db --name nightly --cron 30~2~*~*~* --timezone"
        " Europe/Vienna --misfire-policy skip --overlap-policy queue --require-window --disabled",
        "/software_schedules",
        {
            "name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Vienna", "require_window": True,
            "misfire_policy": "SKIP", "overlap_policy": "QUEUE", "enabled": False,
            "trigger": {**BACKUP, "input_values": {"a": "b"}, "selector": "role=db"},
        },
    ),
    (
        f"schedule create app database BACKUP --at {TIME}",
        "/software_schedules",
        {"name": "app database BACKUP", "at": TIME, "enabled": True, "trigger": BACKUP},
    ),
    (
        "deployment create --config setup --server old -i a=1",
        "/software_deployments",
        {
            "config_id": "CONFIG-ID", "server_id": "SERVER-ID", "input_values": {"a": "1"}, "action": "CREATE",
            "signal_transport": "STOKER_SIGNAL",
        },
    ),
    ("server enroll web1", SERVERS, {**ONE, "name": "web1"}),
    ("server enroll web1 --expires 7d", SERVERS, {**ONE, "name": "web1", "expires_in": 604800}),
    ("server enroll old --again", SERVERS, {**ONE, "name": "old", "again": True}),
    ("server enroll old --again --rerun", SERVERS, {**ONE, "name": "old", "again": True, "rerun": True}),
    (
        "server enroll web1 --proxy http://proxy:1 --with curl",
        SERVERS,
        {"name": "web1", "proxy": "http://proxy:1", "download": "curl"},
    ),
    ("server user-data web1 --proxy http://proxy:1", SERVERS, {"name": "web1", "proxy": "http://proxy:1"}),
    ("server enroll --many --limit 3", MANY, SEVERAL),
    (
        "server enroll --many --limit 3 --label role=web --label site=a --approve --name-from cloud-id --names web*",
        MANY,
        {
            **SEVERAL, "labels": {"role": "web", "site": "a"}, "approval": True, "name_from": "cloud-id",
            "names": "web*",
        },
    ),
    (
        "server policy old --allow stack=app --allow project=PROJECT-ID --group script --max-concurrent 2"
        " --window 0~2~*~*~*;~120;~Europe/Vienna --window */5~*~*~*~*;1",
        "/servers/old",
        {"policy": {
            "allow": [{"stack": "app"}, {"project": "PROJECT-ID"}], "groups": ["script"], "max_concurrent_runs": 2,
            "maintenance_windows": [
                {"cron": "0 2 * * *", "minutes": 120, "timezone": "Europe/Vienna"},
                {"cron": "*/5 * * * *", "minutes": 1},
            ],
        }},
    ),
    ("server policy old --allow stack", "/servers/old", {"policy": {"allow": "STACK"}}),
    ("server policy old policy.yaml", "/servers/old", {"policy": {"allow": "STACK"}}),
    ("server policy old --clear", "/servers/old", {"policy": None}),
    ("server label old role=web site= gone-", "/servers/old", {"labels": {"role": "web", "site": "", "gone": None}}),
    (
        "hook add yell go.sh --description Yells",
        "/hooks",
        {"name": "yell", "content": base64.b64encode(b"echo").decode(), "description": "Yells", "public": False},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "path", "body"), SENT, ids=[line[:60] for line, *_ in SENT])
def test_the_options_are_sent(site, stoker, nowhere, line, path, body):
    """In ``line``, ``~`` is a space within a word."""
    for name, text in (FILES | {"policy.yaml": "allow: STACK\n"}).items():
        (nowhere / name).write_text(text)
    # Any trigger and any schedule is created, so that their stacks need not exist.
    for key in ("trigger", "schedule"):
        created = {"id": NEVER, "name": "x", "status": "IN_PROGRESS", "total": 0}
        site.replace("POST", f"/software_{key}s", Said(201, {f"software_{key}": created}))
    config = {"name": "setup", "group": "script", "config": "echo", "inputs": [{"name": "a"}]}
    ids = {
        "STACK-ID": site.create_stack("web", EMPTY)["id"],
        "CONFIG-ID": site.api("POST", "/software_configs", config)["software_config"]["id"],
        "SERVER-ID": site.add_agent("old").id,
        "PROJECT-ID": site.account.project,
    }

    words = [word.replace("~", " ").replace("PROJECT-ID", ids["PROJECT-ID"]) for word in line.split()]
    result = stoker(*words)

    assert result.code == 0, result.err
    _, last, sent = site.bodies[-1]
    assert (last, sent) == (_fill(path, ids), _fill(body, ids))


def _fill(value, ids):
    """Return ``value`` with the ids in the place of their words."""
    if isinstance(value, dict):
        return {key: _fill(part, ids) for key, part in value.items()}
    if isinstance(value, list):
        return [_fill(part, ids) for part in value]
    for word, id_ in ids.items():
        value = value.replace(word, id_) if isinstance(value, str) and value.endswith(word) else value
    return value
