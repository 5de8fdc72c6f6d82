"""The audit log without any policy: who did what to which objects, with names that outlive them."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.http.heat import ROUTES as HEAT
from stoker.http.identity import ROUTES as IDENTITY
from stoker.http.stoker import ROUTES as STOKER
from stoker.model.errors import DeploymentRefused, Unavailable
from stoker.store import servers
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
    *("configs.create", "previews.create_on_servers", "previews.replace_it", "previews.change"),
    "stack_lookup.redirect",
    *("types.validate", "previews.create", "runs.signal", "resources.signal", "auth.revoke"),
}


def entries(site: Inside, query: str = "", *, is_site: bool = False) -> list[tuple[Any, ...]]:
    """The entries from the oldest, without the administrator's own login."""
    columns = ("actor", "action", "outcome", "server_name", "stack_name", "resource_name", "config_name")
    listed = site.call("GET", f"/audit{'/site' if is_site else ''}{query}")["audit"][::-1]
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
    server = site.create("servers", name="web1")["id"]
    config_id = site.create("software_configs", name="say", group="script", config="echo")["id"]
    run = {"config_id": config_id, "server_id": server, "action": "CREATE", "signal_transport": "STOKER_SIGNAL"}
    deployment_id = site.create("software_deployments", **run)["id"]
    site.call("DELETE", f"/software_deployments/{deployment_id}")
    site.call("DELETE", f"/software_configs/{config_id}")
    site.call("DELETE", "/servers/web1")
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
    path = site.create_stack("shop", template({"config": config(), "server": server, "d": deployment()}))
    site.call("POST", f"{path}/actions", {"check": None}, 409)
    trigger = f"/software_triggers/{site.create('software_triggers', stack='shop', resource='d')['id']}"
    site.call("POST", f"{trigger}/cancel", {"force": True})
    site.call("PUT", path, {"template": template({})})
    site.call("DELETE", path)
    site.call("DELETE", trigger)
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


def test_changes_of_labels_and_policies_are_audited_and_invalid_ones_are_refused(site):
    site.create("servers", name="web1")
    for said in ({"labels": {"a": 1}}, {"labels": [1]}, {"policy": "ALL"}, {"policy": {"groups": 1}}, []):
        site.call("PATCH", "/servers/web1", said, 400)
    site.call("GET", "/servers?labels=tier", status=400)
    for said in ({"labels": {"tier": "web", "zone": "a"}}, {"labels": {"zone": None}}, {}, {"policy": "STACK"}):
        server = site.call("PATCH", "/servers/web1", said)["server"]
    assert (server["labels"], server["window"]) == ({"tier": "web"}, {"open": True, "changes_at": None})
    assert [entry[1] for entry in entries(site)] == ["change labels"] * 2 + ["change policy"]
    assert site.call("GET", "/audit")["audit"][2]["reason"] == '{} → {"tier":"web","zone":"a"}'


def test_users_logins_and_refusals(site):
    password = "a long enough password"
    login = {"identity": {"methods": ["password"], "password": {"user": {"name": "ann", "domain": {"id": "default"}}}}}
    user = site.request("POST", "/identity/v3/users", {"user": {"name": "ann", "password": password}}).body["user"]
    grant = f"/identity/v3/projects/{site.project}/users/{user['id']}/roles/reader"
    assert site.request("PUT", grant).status == 204
    assert entries(site, is_site=True) == [
        ("admin", "create user", "ALLOWED", None, None, None, None),
        ("admin", "grant role", "ALLOWED", None, None, None, None),
    ]
    reasons = [entry["reason"] for entry in site.call("GET", "/audit/site")["audit"]]
    assert reasons == ["default ann reader", "ann"]

    scope = {"project": {"id": site.project}}
    tokens = []
    for attempt in ("wrong", password):
        login["identity"]["password"]["user"]["password"] = attempt
        answer = site.request("POST", "/identity/v3/auth/tokens", {"auth": {**login, "scope": scope}})
        tokens.append(answer.headers.get("X-Subject-Token"))
    assert [token is None for token in tokens] == [True, False]
    assert site.heat("DELETE", "/servers/web1", **{"X-Auth-Token": tokens[1]}).status == 403
    (failed,) = site.call("GET", "/audit/site?outcome=REFUSED")["audit"]
    assert (failed["actor"], failed["action"]) == ("ann", "log in")
    assert failed["reason"].startswith("from testclient: ")
    denial, login_entry = site.call("GET", "/audit?actor=ann")["audit"]
    assert (login_entry["action"], login_entry["outcome"]) == ("log in", "ALLOWED")
    assert (denial["action"], denial["outcome"]) == (f"DELETE /v1/{site.project}/servers/web1", "REFUSED")


def test_the_creation_of_a_deployment_executes_one_statement_for_its_entry(site):
    server = site.create("servers", name="web1")["id"]
    config_id = site.create("software_configs", name="c")["id"]
    body = {"config_id": config_id, "server_id": server, "action": "CREATE", "status": "IN_PROGRESS"}
    with recorded_statements(site.store) as statements:
        site.create("software_deployments", **body)
    assert sum("audit" in str(statement) for statement in statements) == 1


def test_a_denied_request_may_be_repeated_after_a_lost_database(site, monkeypatch):
    """The entry of the refusal is written in a transaction of its own, which may fail too."""
    server = site.create("servers", name="web1")["id"]
    config_id = site.create("software_configs", name="c", group="script", config="x")["id"]
    site.store.write(lambda tx: servers.change(tx, server, policy={"groups": ["puppet"]}))
    run = {"config_id": config_id, "server_id": server, "status": "IN_PROGRESS"}
    write, refused = site.store.write, []

    def failing(do: Any, **options: Any) -> Any:
        if refused:
            raise Unavailable("cannot write to the database: it went away")
        try:
            return write(do, **options)
        except DeploymentRefused as error:
            refused.append(error)
            raise

    with monkeypatch.context() as patch:
        patch.setattr(site.store, "write", failing)
        site.call("POST", "/software_deployments", run, 503)
    assert refused
    assert entries(site) == []
    site.call("POST", "/software_deployments", run, 403)
    assert [outcome for _, _, outcome, *_ in entries(site)] == ["REFUSED"]
