"""The audit log without any policy: who did what to which objects, with names that outlive them."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.http.heat import ROUTES as HEAT
from stoker.http.identity import ROUTES as IDENTITY
from stoker.http.stoker import ROUTES as STOKER
from support.in_process import Inside
from support.statements import recorded_statements
from support.templates import config, define, deployment, template

pytestmark = pytest.mark.filterwarnings("ignore")

#: Handlers whose changes have an entry of their own: of runs, of operations on stacks, and with more details.
ELSEWHERE = {
    *("deployments.create", "stacks.create", "stacks.replace", "stacks.change", "stacks.delete"),
    *("stack_operations.act", "servers.change", "auth.log_in"),
}
#: Handlers that change nothing, or do so too often: results of runs, configs that nothing runs yet.
UNAUDITED = {
    *(
        "configs.create",
        "previews.create_on_servers",
        "previews.replace_it",
        "previews.change",
        "stack_lookup.redirect",
    ),
    *("types.validate", "previews.create", "runs.signal", "resources.signal", "auth.revoke"),
}


def call(site: Inside, verb: str, path: str, body: Any = None, status: int = 200) -> Any:
    path = path if path.startswith("/identity") else f"/v1/{site.project}{path}"
    answer = site.client.request(verb, path, json=body, headers=site.headers, follow_redirects=True)
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def entries(site: Inside, query: str = "", *, is_site: bool = False) -> list[tuple[Any, ...]]:
    """The entries from the oldest, without the administrator's own login."""
    columns = ("actor", "action", "outcome", "server_name", "stack_name", "resource_name", "config_name")
    listed = call(site, "GET", f"/audit{'/site' if is_site else ''}{query}")["audit"][::-1]
    rows = [tuple(entry[name] for name in columns) for entry in listed]
    return [row for row in rows if row[1] not in ("log in", "create enrollment")]


def test_every_change_leaves_an_entry():
    missing = {
        f"{route.handler.__module__.rpartition('.')[2]}.{route.handler.__name__}"
        for route in (*HEAT, *STOKER, *IDENTITY)
        if route.verb not in ("GET", "HEAD") and not route.action
    }
    assert missing == ELSEWHERE | UNAUDITED


def test_a_run_and_its_objects_have_names_after_their_deletion(site):
    server = call(site, "POST", "/servers", {"name": "web1"}, 201)["server"]["id"]
    body = {"name": "say", "group": "script", "config": "echo"}
    config_id = call(site, "POST", "/software_configs", body)["software_config"]["id"]
    run = {"config_id": config_id, "server_id": server, "action": "CREATE", "signal_transport": "STOKER_SIGNAL"}
    deployment_id = call(site, "POST", "/software_deployments", run)["software_deployment"]["id"]
    call(site, "DELETE", f"/software_deployments/{deployment_id}", status=204)
    call(site, "DELETE", f"/software_configs/{config_id}", status=204)
    call(site, "DELETE", "/servers/web1", status=204)
    assert entries(site) == [
        ("admin", "run CREATE", "ALLOWED", "web1", None, None, "say"),
        ("admin", "delete deployment", "ALLOWED", "web1", None, None, "say"),
        ("admin", "delete config", "ALLOWED", None, None, None, "say"),
        ("admin", "delete server", "ALLOWED", "web1", None, None, None),
    ]
    of_server = [entry[1] for entry in entries(site, "?server=web1")]
    assert of_server == ["run CREATE", "delete deployment", "delete server"]
    assert [entry[1] for entry in entries(site, f"?server={server}")] == of_server
    assert entries(site, "?server=other") == entries(site, "?actor=other") == []


def test_operations_on_a_stack_name_it(site):
    server = define("OS::Heat::DeployedServer", name="web1")
    body = {"stack_name": "shop", "template": template({"config": config(), "server": server, "d": deployment()})}
    path = f"/stacks/shop/{call(site, 'POST', '/stacks', body, 201)['stack']['id']}"
    call(site, "POST", f"{path}/actions", {"check": None}, 409)
    trigger = call(site, "POST", "/software_triggers", {"stack": "shop", "resource": "d"}, 201)["software_trigger"]
    call(site, "POST", f"/software_triggers/{trigger['id']}/cancel", {"force": True}, 202)
    call(site, "PUT", path, {"template": template({})}, 202)
    call(site, "DELETE", path, status=204)
    call(site, "DELETE", f"/software_triggers/{trigger['id']}", status=204)
    run, *others = entries(site, "?stack=shop")
    assert run[:-1] == ("the stack shop", "run CREATE", "ALLOWED", "web1", "shop", "d")
    assert run[-1].startswith("shop-config-")
    assert others == [
        ("admin", "create stack", "ALLOWED", None, "shop", None, None),
        ("admin", "create trigger", "ALLOWED", None, "shop", "d", None),
        ("admin", "cancel trigger", "ALLOWED", None, "shop", "d", None),
        ("admin", "update stack", "ALLOWED", None, "shop", None, None),
        ("admin", "delete stack", "ALLOWED", None, "shop", None, None),
        ("admin", "delete trigger", "ALLOWED", None, "shop", "d", None),
    ]


def test_users_logins_and_refusals(site):
    password = "a long enough password"
    login = {"identity": {"methods": ["password"], "password": {"user": {"name": "ann", "domain": {"id": "default"}}}}}
    user = call(site, "POST", "/identity/v3/users", {"user": {"name": "ann", "password": password}}, 201)
    grant = f"/identity/v3/projects/{site.project}/users/{user['user']['id']}/roles/reader"
    call(site, "PUT", grant, status=204)
    assert entries(site, is_site=True) == [
        ("admin", "create user", "ALLOWED", None, None, None, None),
        ("admin", "grant role", "ALLOWED", None, None, None, None),
    ]
    reasons = [entry["reason"] for entry in call(site, "GET", "/audit/site")["audit"]]
    assert reasons == ["default ann reader", "ann"]

    scope = {"project": {"id": site.project}}
    tokens = []
    for attempt in ("wrong", password):
        login["identity"]["password"]["user"]["password"] = attempt
        answer = site.client.post("/identity/v3/auth/tokens", json={"auth": {**login, "scope": scope}})
        tokens.append(answer.headers.get("X-Subject-Token"))
    assert [token is None for token in tokens] == [True, False]
    refused = site.client.delete(f"/v1/{site.project}/servers/web1", headers={"X-Auth-Token": tokens[1]})
    assert refused.status_code == 403
    (failed,) = call(site, "GET", "/audit/site?outcome=REFUSED")["audit"]
    assert (failed["actor"], failed["action"]) == ("ann", "log in")
    assert failed["reason"].startswith("from testclient: ")
    denial, login_entry = call(site, "GET", "/audit?actor=ann")["audit"]
    assert (login_entry["action"], login_entry["outcome"]) == ("log in", "ALLOWED")
    assert (denial["action"], denial["outcome"]) == (f"DELETE /v1/{site.project}/servers/web1", "REFUSED")


def test_the_creation_of_a_deployment_executes_one_statement_for_its_entry(site):
    server = call(site, "POST", "/servers", {"name": "web1"}, 201)["server"]["id"]
    config_id = call(site, "POST", "/software_configs", {"name": "c"})["software_config"]["id"]
    body = {"config_id": config_id, "server_id": server, "action": "CREATE", "status": "IN_PROGRESS"}
    with recorded_statements(site.store) as statements:
        call(site, "POST", "/software_deployments", body)
    assert sum("audit" in str(statement) for statement in statements) == 1
