"""
Every route of every API, asked by everybody who should not have what it gives.

The routes come from the tables that a served Stoker has, and what is expected from the access rule of each row: a new
route is tested as soon as it is there, and fails here when its rule, or a name in its path, is one that nobody has
thought about yet.
"""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import uuid
from collections.abc import Callable, Mapping

import pytest

from stoker.http import access
from stoker.http.api import Route
from stoker.http.apis import list_apis
from stoker.http.identity import access as identity_access
from stoker.identity.stack_users import SignalTokens, StackUsers, user_id
from stoker.settings import Settings
from support.accounts import Account, create_account, create_project
from support.agent_protocol import spoken_agent
from support.project_contents import CLIENT_ID, COMMON, Contents, absent_names, fill_project
from support.raw import request
from support.server import Served

ROUTES = [route for api in list_apis(Settings()) for route in api.routes]
#: Reviewed: nothing that one of these answers belongs to anybody.
PUBLIC = {
    ("GET", "/healthz"),
    ("GET", "/"),
    ("GET", "/versions"),
    ("GET", "/v1"),
    ("GET", "/openapi.json"),
    ("POST", "/agent/v1/enroll"),  # an enrollment token is in the body
    ("GET", "/agent/v1/install"),
    ("GET", "/agent/v1/stoker-agent.pyz"),
    ("GET", "/cfn"),
    ("GET", "/console"),  # the handlers of the console look for the session's cookie
    ("GET", "/console/assets/{asset_name}"),
    ("GET", "/console/enter"),
    ("POST", "/console/enter"),  # a one-time code is in the body
    ("GET", "/console/sign-in"),
    ("POST", "/console/sign-in"),
    ("POST", "/console/sign-out"),
    ("GET", "/console/p/{project}"),
    ("GET", "/console/p/{project}/{page*}"),
    ("GET", "/identity"),
    ("GET", "/identity/v3"),
    ("POST", "/identity/v3/auth/tokens"),  # the login
    ("GET", "/messaging"),
    ("GET", "/object-store/info"),
    ("HEAD", "/object-store/info"),
}
#: Reviewed: who has signed a request, and what they may do, is for their handlers to find out.
SIGNED = {
    ("GET", "/cfn/v1"),
    ("POST", "/cfn/v1"),
    ("PUT", "/cfn/v1"),
    ("POST", "/cfn/v1/signal/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"),
    ("PUT", "/cfn/v1/waitcondition/{arn}/{stack_name}/{stack_id}/resources/{resource_name}"),
}
#: Reviewed: whoever has a token may see these, whatever they may do otherwise.
LOGGED_IN = {
    "/identity/v3/auth/catalog",
    "/identity/v3/auth/projects",  # one's own
    "/identity/v3/auth/domains",
    "/identity/v3/domains",
    "/identity/v3/domains/{domain_id}",
    "/identity/v3/roles",
    "/identity/v3/roles/{role_id}",
    "/identity/v3/services",
    "/identity/v3/services/{service_id}",
    "/identity/v3/endpoints",
    "/identity/v3/endpoints/{endpoint_id}",
    "/identity/v3/regions",
    "/identity/v3/regions/{region_id}",
}
#: Reviewed: requests with a body that change nothing, and that readers may send.
READING = {
    ("POST", "/v1/{project}/validate"),
    ("POST", "/v1/{project}/stacks/preview"),
    ("POST", "/v1/{project}/console_codes"),  # for themselves
}
#: Reviewed: what an agent's key gives without naming a run is of its own server.
OF_ITS_OWN = {"/agent/v1/document", "/agent/v1/approval", "/agent/v1/facts", "/agent/v1/refusals"}
#: What an actor is expected to get.
UNKNOWN, REFUSED, HIDDEN, NOT_THEIRS = {401}, {403}, {404}, {400, 403, 404}
#: Let in: whatever the handler makes of it.
ADMITTED = set(range(200, 500)) - {401, 403}
Expected = Callable[[Route], set[int]]


def ask(stoker: Served, verb: str, path: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
    body = b"{}" if verb in ("POST", "PUT", "PATCH") else None
    sent = {"Content-Type": "application/json", "Client-ID": CLIENT_ID, **headers}
    answer = request(stoker, verb, path, body, sent)
    return answer.status, answer.raw


def path_of(route: Route, names: Mapping[str, str]) -> str:
    """Raises KeyError for a name that ``support.project_contents`` has nothing for."""
    path = re.sub(r"\{(\w+)\*?\}", lambda found: names[found[1]], route.path)
    queries = {
        "/cfn/v1": f"?Action=DescribeStackResources&StackName={names['stack_id']}",
        "/v1/{project}/events": f"?subject=trigger:{names['trigger_id']}",
    }
    return path + queries.get(route.path, "")


def of_nobody(route: Route) -> set[int]:
    """Without a token, or with one that is none."""
    match route.access:
        case access.PUBLIC:
            return ADMITTED | UNKNOWN
        case access.SIGNED:
            return {400, 401, 403}
    schemes = {credential.scheme for credential in route.access.credentials}
    if access.QUEUE_TOKEN in route.access.credentials:
        return HIDDEN
    assert schemes & {"token", "agentKey", "relayKey"}, f"{route.verb} {route.path}: what {schemes} let in is unknown"
    return UNKNOWN


def of_token(route: Route, in_project: set[int]) -> set[int]:
    """With a token of somebody else; ``in_project``: where the rule asks for a role in the path's project."""
    match route.access:
        case access.PUBLIC:
            return ADMITTED | UNKNOWN
        case access.SIGNED:
            return NOT_THEIRS
        case access.ANY_TOKEN:
            return ADMITTED
        case identity_access.OWN_OR_SITE:
            return ADMITTED | REFUSED
    if access.QUEUE_TOKEN in route.access.credentials:
        return HIDDEN
    if access.TOKEN not in route.access.credentials:
        return UNKNOWN
    return in_project if isinstance(route.access.allow, access.InProject) else REFUSED


def of_stranger(route: Route) -> set[int]:
    return of_token(route, REFUSED)


def of_stranger_at_home(route: Route) -> set[int]:
    """In the own project, where the ids mean nothing: lists are one's own, names are free."""
    return of_token(route, ADMITTED)


def for_readers(route: Route) -> bool:
    return isinstance(route.access.allow, access.InProject) and "reader" in route.access.allow.people


def of_reader(route: Route) -> set[int]:
    if route.access is access.SIGNED:
        return ADMITTED | REFUSED
    return of_token(route, ADMITTED if for_readers(route) else REFUSED)


def of_login(route: Route) -> set[int]:
    """Of a user that stands for one resource, in the same project: of the others it does not learn that they are."""
    allow = route.access.allow
    if isinstance(allow, access.InProject) and access.AGENT in allow.resources:
        return HIDDEN if access.AGENT_KEY in route.access.credentials else REFUSED | HIDDEN
    return of_token(route, REFUSED)


def of_agent(route: Route) -> set[int]:
    """Of another project's server. Its own document is its own."""
    if "agentKey" not in {credential.scheme for credential in route.access.credentials}:
        return of_nobody(route)
    if access.SIGNAL_URL in route.access.credentials:
        return HIDDEN
    return {200, 204} if route.path in OF_ITS_OWN else HIDDEN | {400}


def of_signal_token(route: Route) -> set[int]:
    if access.SIGNAL_URL in route.access.credentials:
        return HIDDEN
    return REFUSED if access.SIGNAL_TOKEN in route.access.credentials else of_nobody(route)


@pytest.fixture(scope="module")
def contents(stoker) -> Contents:
    return fill_project(create_account(stoker, "member", "reader", project=create_project(stoker)))


ACTORS: Mapping[str, Expected] = {
    "nobody": of_nobody,
    "wrong token": of_nobody,
    "empty token": of_nobody,
    "expired token": of_nobody,
    "reader": of_reader,
    "member of another project": of_stranger,
    "administrator of another project": of_stranger,
    "member of another project, at home": of_stranger_at_home,
    "login of a deployment": of_login,
    "another server's agent": of_agent,
    "a signal's token": of_signal_token,
}
#: Those who are let in somewhere, and must not learn there what else there is.
CURIOUS = [name for name, expected in ACTORS.items() if expected not in (of_nobody, of_reader)]


@pytest.fixture(scope="module")
def headers(stoker, stranger, contents) -> dict[str, dict[str, str]]:
    """What comes with each request of an actor."""
    owner = contents.owner
    reader = create_account(stoker, "reader", project=owner.project)
    admin = create_account(stoker, "admin", project=create_project(stoker))
    login, deployment = login_of_a_deployment(stoker, owner)
    tokens = {
        "wrong token": uuid.uuid4().hex,
        "empty token": "",
        "expired token": expired_token(stoker, owner),
        "reader": reader.token,
        "member of another project": stranger.token,
        "administrator of another project": admin.token,
        "login of a deployment": login,
        "a signal's token": SignalTokens(site_secret(stoker)).token(deployment),
    }
    subject = {"X-Subject-Token": owner.token}
    return {
        "nobody": {},
        **{name: {"X-Auth-Token": token, "X-Project-Id": owner.project, **subject} for name, token in tokens.items()},
        "member of another project, at home": {"X-Auth-Token": stranger.token, **subject},
        "another server's agent": {"Authorization": f"Bearer {spoken_agent(stoker).key}"},
    }


@pytest.fixture
def names(name, stranger, contents) -> Mapping[str, str]:
    """What stands in the paths that an actor asks for."""
    own = {"project": stranger.project, "account": f"AUTH_{stranger.project}"} if name.endswith("at home") else {}
    return {**contents.names, **own}


@pytest.mark.parametrize("name", ACTORS)
def test_every_actor_gets_the_expected_status_on_every_route(stoker, headers, contents, names, name):
    unseen = (contents.hidden, contents.agent_key, *(() if name == "reader" else (contents.secret,)))
    complaints = []
    for route in ROUTES:
        if (name, route.verb, route.path) == ("another server's agent", "DELETE", "/agent/v1/server"):
            continue  # the agent would leave, and have no key for the routes that follow
        status, body = ask(stoker, route.verb, path_of(route, names), headers[name])
        if status not in ACTORS[name](route):
            complaints.append(f"{route.verb} {route.path}: {status} {body[:200]!r}")
        complaints += [f"{route.verb} {route.path} tells {each}" for each in unseen if each.encode() in body]
    assert complaints == []


@pytest.mark.parametrize("name", CURIOUS)
def test_unauthorized_actors_cannot_tell_whether_objects_exist(stoker, headers, names, name):
    complaints = []
    for route in ROUTES:
        named = set(re.findall(r"\{(\w+)", route.path))
        if not named - set(COMMON):
            continue
        answers = []
        for ids in (names, absent_names(names)):
            status, body = ask(stoker, route.verb, path_of(route, ids), headers[name])
            text = body.decode(errors="replace") if status >= 400 else ""
            for each in sorted((ids[key] for key in named), key=len, reverse=True):
                text = text.replace(each, "*")
            answers.append((status, text))
        if answers[0] != answers[1]:
            complaints.append(f"{route.verb} {route.path}: {answers}")
    assert complaints == []


def test_the_public_routes_are_the_reviewed_ones():
    public = {(each.verb, each.path) for each in ROUTES if each.access is access.PUBLIC}
    signed = {(each.verb, each.path) for each in ROUTES if each.access is access.SIGNED}
    logged_in = {each.path for each in ROUTES if each.access is access.ANY_TOKEN}
    assert public == PUBLIC
    assert signed == SIGNED
    assert logged_in == LOGGED_IN
    assert all(each.verb == "GET" for each in ROUTES if each.access is access.ANY_TOKEN)


def test_readers_only_read():
    """Their role is enough for no row that changes something."""
    writing = {(each.verb, each.path) for each in ROUTES if for_readers(each) and each.verb not in ("GET", "HEAD")}
    assert writing == READING


def test_the_owner_finds_every_object_in_the_paths(stoker, contents):
    """Without this, everything would be hidden from everybody."""
    headers = {"X-Auth-Token": contents.owner.token, "X-Subject-Token": contents.owner.token}
    own = (identity_access.SELF_OR_SITE, identity_access.SELF_OR_PROJECT_ADMIN, identity_access.FULL_SELF_OR_SITE)
    routes = [
        each
        for each in ROUTES
        if each.verb == "GET" and (each.access in own or isinstance(each.access.allow, access.InProject))
    ]
    routes = [each for each in routes if "/system/" not in each.path]  # where the owner has no role
    answers = [(each.path, ask(stoker, "GET", path_of(each, contents.names), headers)[0]) for each in routes]
    assert [each for each in answers if each[1] not in (200, 204, 302)] == []


def site_secret(stoker: Served) -> bytes:
    return stoker.state_dir.joinpath("keys/site.key").read_bytes().strip()


def login_of_a_deployment(stoker: Served, owner: Account) -> tuple[str, str]:
    """A token of the user that stands for a deployment of the project, and the deployment's id."""
    config = owner.create("software_configs", name="c", config="x")["id"]
    run = {"config_id": config, "server_id": str(uuid.uuid4()), "signal_transport": "HEAT_SIGNAL"}
    deployment = owner.create("software_deployments", **run)["id"]
    user = {"id": user_id(deployment), "password": StackUsers(site_secret(stoker)).password(deployment)}
    answer = stoker.log_in(user, {"project": {"id": owner.project}})
    assert answer.status == 201, answer.raw
    return answer.headers["X-Subject-Token"], deployment


def expired_token(stoker: Served, account: Account) -> str:
    """A token whose time is over, as it stands in the database."""
    token = uuid.uuid4().hex
    with sqlite3.connect(stoker.state_dir / "stoker.db", timeout=60) as database:
        database.row_factory = sqlite3.Row
        known = hashlib.sha256(account.token.encode()).hexdigest()
        row = dict(database.execute("SELECT * FROM tokens WHERE hash = ?", (known,)).fetchone())
        assert json.dumps(row)
        row |= {"hash": hashlib.sha256(token.encode()).hexdigest(), "expires_at": row["issued_at"] - 1}
        marks = ", ".join(f":{name}" for name in row)
        database.execute(f"INSERT INTO tokens ({', '.join(row)}) VALUES ({marks})", row)
    return token
