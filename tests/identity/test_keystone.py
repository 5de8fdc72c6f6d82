"""Stoker with the users of a real Keystone: whose tokens are good, for what, and for how long."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import yaml

from support import forked
from support.accounts import Account
from support.agents import own_agent
from support.backends import greetings, sections
from support.console import Browser
from support.faulty_line import faulty_line
from support.keystone import SERVICE, Keystone, flags
from support.ports import free_port
from support.server import Answer, Served, served
from support.signatures import INCOMPLETE, signed
from support.templates import define, server, template
from support.upstream import upstream_agent

pytestmark = pytest.mark.slow

TEMPLATE = template(
    {"value": define("OS::Heat::Value", value="kept")}, outputs={"said": {"value": {"get_attr": ["value", "value"]}}}
)


@pytest.fixture(scope="module")
def stoker(keystone: Keystone, tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("stoker")
    with served(folder, *flags(keystone, folder)) as running:
        keystone.add_service("orchestration", f"{running.url}/v1/%(tenant_id)s")
        keystone.add_service("messaging", f"{running.url}/messaging")
        yield running


@pytest.fixture(scope="module")
def project(keystone: Keystone) -> str:
    made = keystone.add_project("people")
    for role in ("member", "reader"):
        keystone.add_user(f"a-{role}", "secret", made, role)
    keystone.add_user("nobody", "secret", keystone.add_project("elsewhere"), "member")
    return made


@pytest.fixture
def member(keystone: Keystone, stoker: Served, project: str) -> Account:
    token = keystone.session(("a-member", "secret"), "people").get_token()
    return Account(stoker, "a-member", "", project, str(token))


def stacks(stoker: Served, project: str, token: str | None, verb: str = "GET", body: object = None) -> Answer:
    return stoker.request(verb, f"/v1/{project}/stacks", body, {"X-Auth-Token": token} if token else {})


def test_the_openstack_command_with_keystones_login(stoker, keystone, project):
    def run(*words: str) -> str:
        login = {**stoker.environment, **keystone.environment("a-member", "secret", "people")}
        done = forked.run(words, {**login, "PYTHONWARNINGS": "ignore"}, timeout=120, program="openstack")
        assert done.returncode == 0, f"{words}\n{done.stderr}\n{stoker.output}"
        return done.stdout

    template = stoker.folder / "template.yaml"
    template.write_text(json.dumps(TEMPLATE))
    run("stack", "create", "by-command", "-t", str(template), "--wait", "--poll", "1")
    shown = yaml.safe_load(run("stack", "show", "by-command", "-f", "json"))
    assert shown["stack_status"] == "CREATE_COMPLETE"
    assert all(f"/v1/{project}/" in link["href"] for link in shown["links"])
    run("stack", "delete", "by-command", "--yes", "--wait")


def test_roles_of_keystone_apply(stoker, keystone, project, member):
    asked = {"stack_name": "roles", "template": TEMPLATE}
    reader = keystone.session(("a-reader", "secret"), "people").get_token()
    assert stacks(stoker, project, reader).status == 200
    assert stacks(stoker, project, reader, "POST", asked).status == 403
    member.create_stack("roles", TEMPLATE)
    other = keystone.session(("nobody", "secret"), "elsewhere").get_token()
    assert stacks(stoker, project, other).status == 403


def test_unauthenticated_requests_are_referred_to_keystone(stoker, keystone, project):
    for token in (None, "nonsense", "x" * 5000, "schlüssel"):
        answer = stacks(stoker, project, token)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == f'Keystone uri="{keystone.url.removesuffix("/v3")}"'
    # Stoker's own users are not asked.
    assert stoker.request("GET", "/identity/v3").status == 404
    assert stoker.environment["OS_AUTH_URL"] == keystone.url


def test_a_revoked_token_ends(stoker, keystone, project):
    token = keystone.session(("a-member", "secret"), "people").get_token()
    assert stacks(stoker, project, token).status == 200
    keystone.admin.delete(f"{keystone.url}/auth/tokens", headers={"X-Subject-Token": token})
    stoker.until(lambda: stacks(stoker, project, token).status == 401)


def test_a_session_of_the_console_has_keystones_login(stoker, keystone, project, built_console):
    def count(browser: Browser) -> int:
        return browser.api("GET", f"/v1/{project}/stacks").status

    assert Browser(stoker).sign_in("a-reader", "wrong").status == 401
    browser = Browser(stoker)
    assert browser.sign_in("a-reader", "secret").status == 303
    facts = browser.open(project)
    assert (facts["user"], facts["can_write"], facts["project"]) == (
        "a-reader",
        False,
        {"id": project, "name": "people"},
    )
    assert count(browser) == 200
    elsewhere = str(keystone.named("projects", "elsewhere")["id"])
    assert browser.api("GET", f"/v1/{elsewhere}/stacks").status == 403
    copy = Browser(stoker, dict(browser.cookies), browser.csrf)
    assert browser.post("sign-out", {"csrf": browser.csrf}).status == 303
    stoker.until(lambda: count(copy) == 401)


def test_invalid_settings_are_a_one_line_error(keystone, tmp_path):
    command = ["serve", "--state-dir", str(tmp_path / "state")]
    for changes, told in (
        ({"login": (SERVICE[0], "wrong")}, "keystone_cloud"),
        ({"keystone_auth_url": "somewhere"}, "keystone_auth_url must begin with http"),
        ({"keystone_cloud": ""}, "identity_mode keystone needs keystone_cloud"),
        ({"identity_mode": "ldap"}, "identity_mode must be stoker or keystone"),
        ({"stack_domain_cloud": "no-such-cloud"}, "the setting stack_domain_cloud names 'no-such-cloud'"),
        ({"keystone_cloud": "no-such-cloud"}, "the setting keystone_cloud names 'no-such-cloud'"),
    ):
        words = [*command, "--port", str(free_port()), *flags(keystone, tmp_path, **changes)]
        variables = {**os.environ, "HOME": str(tmp_path / "home")}
        done = forked.run(words, variables, timeout=60)
        assert done.returncode == 1, done.stdout + done.stderr
        assert told in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_cached_tokens_are_valid_while_keystone_is_unavailable(keystone, project, tmp_path):
    with ExitStack() as running:
        network = running.enter_context(faulty_line(keystone.port))
        settings = flags(keystone, tmp_path, keystone_auth_url=f"{network.url}/v3", keystone_cache_seconds="600")
        stoker = running.enter_context(served(tmp_path, *settings))
        known = keystone.session(("a-member", "secret"), "people").get_token()
        unknown = keystone.session(("a-reader", "secret"), "people").get_token()
        assert stacks(stoker, project, known).status == 200
        network.go()
        assert stacks(stoker, project, known).status == 200
        for _ in range(3):
            refused = stacks(stoker, project, unknown)
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            assert "does not answer" in refused.body["error"]["message"]
        network.come()
        assert stacks(stoker, project, unknown).status == 200
        # A Stoker that starts without it serves too.
        network.go()
        stoker.stop()
        stoker.restart()
        assert stacks(stoker, project, known).status == 503
        network.come()
        assert stacks(stoker, project, known).status == 200


def test_agents_with_stokers_keys_need_no_keystone(stoker, keystone, project, member):
    machine = server(software_config_transport="POLL_SERVER_CFN")
    stack = member.create_stack("polled", template({"server": machine}))
    metadata = member.heat("GET", f"{stack}/resources/server/metadata").body["metadata"]
    section = metadata["os-collect-config"]["cfn"]
    said = {"Action": "DescribeStackResource", "StackName": "polled", "LogicalResourceId": "server"}
    poll = signed(stoker, section["access_key_id"], section["secret_access_key"], **said)
    keystone.stop()
    try:
        assert stoker.request("GET", poll).status == 200
        other = stoker.request("GET", signed(stoker, "f" * 32, "a key of a user", **INCOMPLETE))
        assert (other.status, b"AccessDenied" in other.raw) == (403, True)
    finally:
        keystone.start()
    assert member.heat("DELETE", stack).status == 204
    assert stoker.request("GET", poll).status == 403


@pytest.mark.parametrize("metadata", ["POLL_SERVER_HEAT", "ZAQAR_MESSAGE"])
@pytest.mark.parametrize("kind", ["own", "upstream"])
def test_an_agent_logs_in_at_keystone(stoker, keystone, project, member, request, tmp_path, kind, metadata):
    name = f"{kind}-{metadata.lower()}"
    signals = {signal.lower(): signal for signal in ("HEAT_SIGNAL", "ZAQAR_SIGNAL", "CFN_SIGNAL")}
    script = '#!/bin/sh\nprintf "$who" > "$heat_outputs_path.said"\n'
    stack = member.create_stack(name, greetings(metadata, signals, script=script, machine=f"machine-{name}"))
    stoker.until(lambda: member.outputs(stack)["agent"] is not None, 60)
    known = sections(member, stack)
    assert [section["auth_url"] for section in known.values()] == [keystone.url]
    with ExitStack() as running:
        if kind == "own":
            agent = running.enter_context(own_agent(tmp_path, known))
            agent.start()
        else:
            heat_agents = request.getfixturevalue("heat_agents")
            agent = running.enter_context(upstream_agent(tmp_path, heat_agents, known))
        stoker.until(lambda: member.stack(stack)["stack_status"] != "CREATE_IN_PROGRESS", 120)
        assert member.stack(stack)["stack_status"] == "CREATE_COMPLETE", agent.log[-3000:]
    said = member.outputs(stack)
    assert {name: said[name] for name in signals} == {name: name for name in signals}


def test_the_stoker_command_with_keystones_login(stoker, keystone, project):
    environment = {**stoker.environment, **keystone.environment("a-member", "secret", "people")}
    listed = stoker.run("stack", "list", "-o", "json", environment=environment).stdout
    assert isinstance(json.loads(listed), list)


def test_keystoneauth_is_imported_only_in_keystone_mode():
    said = "import sys, stoker.serve, stoker.commands.serve; print('keystoneauth1' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", said], text=True).strip() == "False"


def test_a_keystone_that_never_answers_does_not_block_the_server(keystone, tmp_path):
    """Nobody waits long for it but those few who find out whether it is there again."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        settings = flags(keystone, tmp_path, timeout=2, keystone_auth_url=url)
        with served(tmp_path, *settings) as stoker, ThreadPoolExecutor(60) as pool:
            asked = [pool.submit(stacks, stoker, "p", f"token-{n}") for n in range(60)]
            assert stoker.request("GET", "/healthz").status == 200
            assert {each.result().status for each in asked} == {503}
