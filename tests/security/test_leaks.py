"""
Secrets in every kind of place; then every GET of every API, as a reader: none of them appears. Nor does one in the
server's logs, or in the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.fernet import Fernet

from stoker.http.apis import list_apis
from stoker.http.heat import ROUTES as HEAT
from stoker.settings import Settings
from stoker.store.open import Store
from support import tables
from support.accounts import Account, create_account, create_project
from support.backends import CLIENT
from support.project_contents import fill_project
from support.server import Served, served_on
from support.templates import define, on

#: Whatever can be read, by its path.
PATHS = [route.path for api in list_apis(Settings()) for route in api.routes if route.verb == "GET"]
PATHS += [
    "/cfn/v1?Action=DescribeStackResources&StackName={stack_id}",
    "/cfn/v1?Action=DescribeStackResource&StackName={stack_id}&LogicalResourceId={resource_name}",
]
#: What a member may read of stacks; an export has the values with which a stack can be created elsewhere.
STACK_PATHS = [route.path for route in HEAT if route.verb == "GET" and not route.path.endswith("/export")]
#: Where a hidden parameter, a secret input … has its value from.
SECRETS = {
    name: f"S3CR3T-{name}-{number:x}"
    for number, name in enumerate(
        (
            *("hidden", "default", "environment", "below", "undeclared", "updated", "mistyped", "inner"),
            *("input", "input_default", "override", "planned", "output", "key"),
        ),
        0xA0B0C,
    )
}
LINES = '-----BEGIN-----\nS3CR3T-first-line\nS3CR3T-second "line"\n-----END-----'
NESTED = """
heat_template_version: 2018-08-31
parameters:
  handed: {type: string}
  below: {type: string, hidden: true}
  own: {type: string, hidden: true, default: "%(inner)s"}
  plain: {type: string, default: open}
resources:
  value: {type: OS::Heat::Value, properties: {value: {list_join: ["+", [{get_param: handed}, {get_param: own}]]}}}
outputs:
  handed: {value: {get_param: handed}}
  own: {value: {get_param: own}}
  below: {value: {get_attr: [value, value]}}
"""


def template(mistyped: bool = False) -> dict[str, Any]:
    def server(transport: str) -> dict[str, Any]:
        return define("OS::Heat::DeployedServer", software_config_transport=transport)

    def deployment(server: str, transport: str) -> dict[str, Any]:
        return on(
            {"get_resource": server},
            signal_transport=transport,
            input_values={
                "word": {"get_param": "hidden"},
                "url": {"str_replace": {"template": "http://u:P@h", "params": {"P": {"get_param": "hidden"}}}},
                "plain": "open",
                "lines": {"get_param": "lines"},
            },
        )

    servers = {"heat": "POLL_SERVER_HEAT", "cfn": "POLL_SERVER_CFN", "swift": "POLL_TEMP_URL", "zaqar": "ZAQAR_MESSAGE"}
    signals = {"heat": "HEAT_SIGNAL", "cfn": "CFN_SIGNAL", "swift": "TEMP_URL_SIGNAL", "zaqar": "ZAQAR_SIGNAL"}
    hidden = {"type": "string", "hidden": True}
    handles = {
        "token_handle": ("OS::Heat::WaitConditionHandle", {}),
        "cfn_handle": ("OS::Heat::WaitConditionHandle", {"signal_transport": "CFN_SIGNAL"}),
        "login_handle": ("OS::Heat::WaitConditionHandle", {"signal_transport": "HEAT_SIGNAL"}),
        "swift_handle": ("OS::Heat::SwiftSignalHandle", {}),
        "queue": ("OS::Zaqar::Queue", {"name": "mine", "metadata": {"said": {"get_param": "hidden"}}}),
        "webhook": (
            "OS::Zaqar::Subscription",
            {
                "queue_name": {"get_resource": "queue"},
                "subscriber": {
                    "str_replace": {"template": "http://hooks.invalid/P", "params": {"P": {"get_param": "hidden"}}}
                },
                "options": {"post_data": {"get_param": "hidden"}},
                "ttl": 3600,
            },
        ),
        "signed": ("OS::Zaqar::SignedQueueURL", {"queue": {"get_resource": "queue"}}),
    }
    resources: dict[str, Any] = {
        "config": define(
            "OS::Heat::SoftwareConfig",
            group="script",
            config={"str_replace": {"template": "echo P", "params": {"P": {"get_param": "hidden"}}}},
            inputs=[
                *({"name": name} for name in ("word", "url", "plain", "lines")),
                {"name": "marked", "secret": True, "default": SECRETS["input_default"]},
            ],
            outputs=[{"name": "result"}],
        ),
        **{f"server_{name}": server(transport) for name, transport in servers.items()},
        **{f"run_{name}": deployment(f"server_{name}", transport) for name, transport in signals.items()},
        **{name: define(kind, **properties) for name, (kind, properties) in handles.items()},
        "inside": define("nested.yaml", handed={"get_param": "hidden"}),
        "group": define(
            "OS::Heat::ResourceGroup", count=2, resource_def=define("OS::Heat::Value", value={"get_param": "hidden"})
        ),
        "shown": define("OS::Heat::Value", value=[{"get_param": "defaulted"}, "open"]),
        "as_token": define("OS::Heat::Value", value={"get_attr": ["token_handle", "curl_cli"]}),
        "noted": define("OS::Heat::Value", value="open") | {"metadata": {"said": {"get_param": "environment"}}},
    }
    if mistyped:
        number = {"type": "number", "value": {"get_attr": ["shown", "value", 0]}}
        resources["number"] = define("OS::Heat::Value", **number)
    outputs: dict[str, Any] = {
        "hidden": {"get_param": "hidden"},
        "within": {"str_replace": {"template": "<P>", "params": {"P": {"get_param": "hidden"}}}},
        "group": {"get_attr": ["group", "value"]},
        "inner": {"get_attr": ["inside", "own"]},
        "below": {"get_attr": ["inside", "below"]},
        "result": {"get_attr": ["run_heat", "result"]},
        "stdout": {"get_attr": ["run_heat", "deploy_stdout"]},
        "swift": {"get_attr": ["swift_handle", "curl_cli"]},
        "signed": {"get_attr": ["signed", "signature"]},
        "query": {"get_attr": ["signed", "query_str"]},
        "plain": {"get_param": "plain"},
        **{f"agent_{name}": {"get_attr": [f"server_{name}", "os_collect_config"]} for name in servers},
        **{f"boot_{name}": {"get_attr": [f"server_{name}", "user_data"]} for name in servers},
        **{name: {"get_attr": [name, "signal"]} for name in ("cfn_handle", "login_handle")},
    }
    return {
        "heat_template_version": "2018-08-31",
        "parameters": {
            "hidden": hidden,
            "lines": hidden,
            "environment": hidden,
            "defaulted": {**hidden, "default": SECRETS["default"]},
            "plain": {"type": "string", "default": "open"},
        },
        "resources": resources,
        "outputs": {name: {"value": value} for name, value in outputs.items()},
    }


@dataclass
class Site:
    stoker: Served
    member: Account
    reader: Account
    #: What no reader may see.
    secrets: set[str] = field(default_factory=set)
    #: Values for the names in routes' paths, all that belong together.
    places: list[dict[str, str]] = field(default_factory=list)


#: What is shown is chosen after the database is read.
ON_SQLITE = pytest.mark.parametrize("site", ["sqlite"], indirect=True)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def site(request, tmp_path_factory) -> Iterator[Site]:
    flags = ("--log-level", "debug")
    with served_on(request, tmp_path_factory.mktemp("leaks"), *flags) as stoker:
        member = create_account(stoker, "member", "reader", project=create_project(stoker))
        made = Site(stoker, member, create_account(stoker, "reader", project=member.project))
        contents = fill_project(member)
        made.places.append(dict(contents.names))
        made.secrets |= {contents.hidden, contents.agent_key}
        made.secrets |= {*SECRETS.values(), *(line for line in LINES.splitlines() if "S3CR3T" in line)}
        _make_stacks(made)
        _make_software(made)
        _make_storage(made)
        yield made


def ok(answer: Any) -> Any:
    assert answer.status < 300, (answer.status, answer.raw)
    return answer.body


def _make_stacks(site: Site) -> None:
    member, stoker = site.member, site.stoker
    body: dict[str, Any] = {
        "stack_name": "top",
        "template": template(),
        "files": {"nested.yaml": NESTED % SECRETS},
        "parameters": {"hidden": SECRETS["hidden"], "lines": LINES},
        "environment": {
            "parameters": {"environment": SECRETS["environment"]},
            "parameter_defaults": {"below": SECRETS["below"], "nobody": SECRETS["undeclared"]},
        },
    }
    top = ok(member.heat("POST", "/stacks", body))["stack"]["id"]
    stack = f"/stacks/top/{top}"
    runs = {}

    def waits_for_runs() -> bool:
        found = ok(member.heat("GET", f"{stack}/resources"))["resources"]
        runs.update({each["resource_name"]: each["physical_resource_id"] for each in found})
        return all(runs.get(f"run_{name}") for name in ("heat", "cfn", "swift", "zaqar"))

    stoker.until(waits_for_runs)
    _collect_credentials(site, stack)
    for name in ("heat", "cfn", "swift", "zaqar"):
        said = f"using {SECRETS['hidden']} and\n{LINES}\n"
        result = {"result": f"{SECRETS['hidden']}", "deploy_stdout": said, "deploy_stderr": said}
        code = "0" if name != "zaqar" else "1"
        ok(member.heat("POST", f"{stack}/resources/run_{name}/signal", {**result, "deploy_status_code": code}))

    def state():
        return ok(member.heat("GET", stack))["stack"]["stack_status"]

    stoker.until(lambda: "IN_PROGRESS" not in state())
    ok(member.heat("PATCH", stack, {"parameters": {"environment": SECRETS["updated"]}}))
    stoker.until(lambda: _answer_runs(site, stack) or "IN_PROGRESS" not in state())
    snapshot = ok(member.heat("POST", f"{stack}/snapshots", {"name": "before"}))["id"]
    stoker.until(lambda: "IN_PROGRESS" not in state())
    change = {"template": template(mistyped=True), "parameters": {"defaulted": SECRETS["mistyped"]}}
    ok(member.heat("PATCH", stack, change))
    stoker.until(lambda: _answer_runs(site, stack) or "IN_PROGRESS" not in state())
    assert "not a number" in json.dumps(ok(member.heat("GET", f"{stack}/events")))
    site.places += [{"snapshot_id": snapshot, "stack_name": "top", "stack_id": top}]
    _collect_credentials(site, stack)
    _list_places(site)


def _answer_runs(site: Site, stack: str) -> bool:
    """Whatever an update has begun again is told to be done."""
    found = ok(site.member.heat("GET", f"{stack}/resources"))["resources"]
    for each in found:
        if each["resource_type"] == "OS::Heat::SoftwareDeployment" and "IN_PROGRESS" in each["resource_status"]:
            site.member.heat("POST", f"{stack}/resources/{each['resource_name']}/signal", {"deploy_status_code": "0"})
    return False


def _collect_credentials(site: Site, stack: str) -> None:
    """What members get to set up machines by hand: passwords, keys, tokens and signatures."""
    seen = json.dumps(
        [
            ok(site.member.heat("GET", stack)),
            ok(site.member.heat("GET", f"{stack}/resources?with_detail=true")),
            *(
                ok(site.member.heat("GET", f"{stack}/resources/server_{name}/metadata"))
                for name in ("heat", "cfn", "swift", "zaqar")
            ),
        ]
    )
    found = re.findall(r"stk_[0-9a-f]+|signal\.[0-9a-f.-]{60,}|(?:Signature|temp_url_sig)=([^&\\\"' ]+)", seen)
    assert found
    site.secrets |= {each for each in found if each}
    site.secrets |= set(re.findall(r"stk_[0-9a-f]+|signal\.[0-9a-f-]{36}\.[0-9a-f]{64}", seen))


def _list_places(site: Site) -> None:
    listed = ok(site.member.heat("GET", "/stacks?show_nested=true"))["stacks"]
    assert len(listed) >= 3
    for stack in listed:
        path = f"/stacks/{stack['stack_name']}/{stack['id']}"
        of_stack = {"stack_name": stack["stack_name"], "stack_id": stack["id"]}
        site.places.append(of_stack)
        for each in ok(site.member.heat("GET", f"{path}/resources"))["resources"]:
            site.places.append({**of_stack, "resource_name": each["resource_name"]})
        for each in ok(site.member.heat("GET", f"{path}/outputs"))["outputs"]:
            site.places.append({**of_stack, "output_key": each["output_key"]})
        for each in ok(site.member.heat("GET", f"{path}/events"))["events"][:10]:
            site.places.append({**of_stack, "resource_name": each["resource_name"], "event_id": each["id"]})


def _make_software(site: Site) -> None:
    member = site.member
    server = member.create("servers", name="own")["id"]
    inputs = [
        {"name": "password", "secret": True},
        {"name": "other", "secret": True, "default": SECRETS["input_default"]},
        {"name": "plain"},
    ]
    config = member.create(
        "software_configs", name="rest", group="script", config="true", inputs=inputs, outputs=[{"name": "result"}]
    )["id"]
    values = {"password": SECRETS["input"], "plain": "open"}
    deployments = []
    for transport in ("STOKER_SIGNAL", "CFN_SIGNAL", None):
        body = {"config_id": config, "server_id": server, "action": "CREATE", "status": "IN_PROGRESS"}
        more = {"signal_transport": transport} if transport else {}
        deployments.append(member.create("software_deployments", **body, input_values=values, **more))
    result = {
        "deploy_status_code": "1",
        "result": SECRETS["input"],
        "deploy_stdout": f"the password is {SECRETS['input']}!\n",
        "deploy_status_reason": f"wrong password {SECRETS['input']}",
    }
    ok(member.heat("POST", f"/software_deployments/{deployments[0]['id']}/signal", result))
    shown = ok(member.heat("GET", f"/software_deployments/{deployments[0]['id']}"))["software_deployment"]
    assert (shown["status"], shown["output_values"]["result"]) == ("FAILED", "******")
    trigger = {"config_id": config, "servers": [server], "input_values": {**values, "password": SECRETS["override"]}}
    run = member.create("software_triggers", **trigger)["id"]
    ok(member.heat("POST", f"/software_triggers/{run}/cancel", {"force": True}))  # so that its stream ends
    later = {**trigger, "input_values": {**values, "password": SECRETS["planned"]}}
    planned = member.create("software_schedules", name="nightly", cron="0 3 * * *", trigger=later)["id"]
    found = ok(member.heat("GET", "/software_deployments"))["software_deployments"]
    site.places += [{"deployment_id": each["id"], "config_id": each["config_id"], "stream": "stdout"} for each in found]
    site.places += [{"config_id": each} for each in (config, *(each["config_id"] for each in deployments[:2]))]
    site.places += [{"server_id": each} for each in {each["server_id"] for each in found}]
    site.places += [{"server": server}, {"trigger_id": run}, {"schedule_id": planned}]


def _make_storage(site: Site) -> None:
    member, account = site.member, f"/object-store/v1/AUTH_{site.member.project}"
    key = {"X-Account-Meta-Temp-URL-Key": SECRETS["key"]}
    assert member.request("POST", account, b"", **key).status == 204
    key = {"X-Container-Meta-Temp-URL-Key": SECRETS["key"]}
    assert member.request("PUT", f"{account}/own", b"", **key).status == 201
    assert member.request("PUT", f"{account}/own/o", b"open").status == 201
    for each in ok(member.request("GET", f"{account}?format=json")):
        at = {"account": f"AUTH_{member.project}", "container": quote(each["name"], safe="")}
        site.places.append(at)
        for one in ok(member.request("GET", f"{account}/{at['container']}?format=json")):
            site.places.append({**at, "object": quote(one["name"])})
    queues = ok(member.request("GET", "/messaging/v2/queues?limit=20", None, **CLIENT))["queues"]
    assert len(queues) > 2
    site.places += [{"queue": each["name"]} for each in queues]


def filled(path: str, site: Site) -> set[str]:
    """The path with all that there is in the places that it names."""
    names = set(re.findall(r"{(\w+)\*?}", path)) - {"project"}
    fitting = [{**each, "project": site.member.project} for each in site.places if names <= each.keys()]
    return {re.sub(r"{(\w+)\*?}", lambda match, at=each: at[match[1]], path) for each in fitting}


def leaked(secrets: Collection[str], text: str) -> list[str]:
    """Also as JSON in JSON has them."""
    return sorted(each for each in secrets if each in text or json.dumps(each)[1:-1] in text)


def assert_unseen(site: Site, account: Account, secrets: Collection[str], paths: list[str], query: str = "") -> None:
    """Read whatever these paths name: no answer may have one of the secrets."""
    problems, seen = [], 0
    headers = {"X-Project-Id": site.member.project, **CLIENT}
    for form in paths:
        found = filled(form, site)
        assert found, f"teach this test what to ask {form} for"
        for path in found:
            joined = path + (query.replace("?", "&") if "?" in path else query)
            answer = account.request("GET", joined, None, **headers)
            text = answer.raw.decode("utf-8", "replace") + str(list(answer.headers.items()))
            assert answer.status < 500, (joined, answer.status, text)
            seen += answer.status == 200
            problems += [(joined, each) for each in leaked(secrets, text)]
    assert seen > 100
    assert problems[:9] == []


@ON_SQLITE
@pytest.mark.parametrize("query", ["", "?with_detail=true&nested_depth=9", "?format=json&show_nested=true"])
def test_a_reader_sees_no_secret_on_any_route(site, query):
    assert_unseen(site, site.reader, site.secrets, PATHS, query)


def test_members_see_agents_logins_but_no_hidden_values(site):
    """Members set up machines; the values of hidden parameters and secret inputs are nobody's to see."""
    assert_unseen(site, site.member, {each for each in site.secrets if "S3CR3T" in each}, STACK_PATHS)
    (agent,) = [each for each in site.places if each.get("output_key") == "agent_heat"][:1]
    shown = site.member.heat("GET", f"/stacks/top/{agent['stack_id']}/outputs/agent_heat")
    assert "stk_" in shown.raw.decode()


def test_streams_show_a_reader_no_secret(site):
    problems, seen = [], set()
    for place in site.places:
        for noun in {"deployment", "trigger"} & {name.removesuffix("_id") for name in place}:
            id = place[f"{noun}_id"]
            shown = ok(site.reader.heat("GET", f"/software_{noun}s/{id}"))[f"software_{noun}"]
            if shown["status"] == "IN_PROGRESS":
                continue  # its stream has no end
            answer = site.reader.heat("GET", f"/events?subject={noun}:{id}")
            assert answer.raw.endswith(b"\n\n"), answer.raw
            seen.add(noun)
            problems += [(noun, id, each) for each in leaked(site.secrets, answer.raw.decode())]
    assert seen == {"deployment", "trigger"}
    assert problems[:9] == []


def test_the_log_contains_no_secret(site):
    folder = site.stoker.state_dir / "logs"
    text = "".join(each.read_text() for each in folder.rglob("*") if each.is_file()) + site.stoker.output
    assert text
    assert leaked(site.secrets, text) == []


def test_the_database_contains_no_secret(site):
    assert leaked(site.secrets, _everything(site.stoker)) == []


def test_a_key_rotation_re_encrypts_everything_and_interrupts_no_request(site):
    """The last test: from now on no secret has the key that it was written with."""
    stoker, stack = site.stoker, next(each for each in site.places if each.get("stack_name") == "top")
    database = ["--database", stoker.database] if stoker.database else []
    before = _tokens(_everything(stoker))
    done = stoker.run("db", "rotate-keys", "--state-dir", str(stoker.state_dir), *database)
    assert re.match(r"[1-9][0-9]* secrets", done.stdout)
    file = stoker.state_dir / "keys" / "encryption.keys"
    assert file.stat().st_mode & 0o777 == 0o600
    (key,) = file.read_text().split()
    after = _tokens(_values(stoker))
    assert len(after) > 50
    assert not before & after
    for each in after:
        Fernet(key).decrypt(each)
    exported = ok(site.member.heat("GET", f"/stacks/{stack['stack_name']}/{stack['stack_id']}/export"))
    assert exported["environment"]["parameters"]["hidden"] == SECRETS["hidden"]
    assert stoker.run("db", "rotate-keys", "--state-dir", str(stoker.state_dir), *database)


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"gAAAAA[A-Za-z0-9_=-]{60,}", text))


def _everything(stoker: Served) -> str:
    """All that the database's files, or its tables, hold."""
    if stoker.database:
        return _values(stoker)
    files = sorted(stoker.state_dir.glob("stoker.db*"))
    assert files
    return "".join(each.read_bytes().decode("latin-1") for each in files)


def _values(stoker: Served) -> str:
    """Every value of every table."""
    store = Store(stoker.database or f"sqlite:///{stoker.state_dir}/stoker.db")
    with closing(store), store.read() as tx:
        found = [str(row) for table in tables.table_names(tx) for row in tables.read_rows(tx, table)]
    assert len(found) > 100
    return "\n".join(found)
