"""Users that Stoker makes at a real Keystone for its stacks: what they may do, and how they come and go."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from support.accounts import Account
from support.agents import own_agent
from support.concurrency import call_together
from support.faulty_line import faulty_line
from support.keystone import DOMAIN, DOMAIN_ADMIN, Keystone, flags
from support.server import Answer, Served, served
from support.templates import config, define, deployment, server, template

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class People(Account):
    """A project's member at one Stoker, with a token that was got beforehand."""

    keystone: Keystone
    #: What a test that failed has left.
    left: Mapping[str, Mapping[str, str]]

    @classmethod
    def at(cls, keystone: Keystone, stoker: Served, name: str) -> People:
        """Log in as the member ``name`` of the project of that name, which is created when it is needed first."""
        known = keystone.named("projects", name)
        project = known["id"] if known else keystone.add_project(name)
        if not known:
            keystone.add_user(name, "secret", project, "member")
        token = str(keystone.session((name, "secret"), name).get_token())
        left = {kind: in_domain(keystone, kind) for kind in ("users", "projects")}
        return cls(stoker, name, "", project, token, keystone, left)

    def ask(self, verb: str, path: str, token: str, project: str, body: Any = None) -> Answer:
        """Call a path of a project with a token of a stack's user."""
        return self.request(verb, f"/v1/{project}{path}", body, **{"X-Auth-Token": token})

    def delete(self, *stacks: str) -> None:
        """Delete stacks, and wait until all users and projects have left the domain."""
        for stack in stacks:
            assert self.heat("DELETE", stack).status == 204
        self.stoker.until(lambda: not self.users() and not self.projects(), 60)

    def there(self, stack: str, resource: str) -> None:
        """Wait for what the resource is to become."""
        path = f"{stack}/resources/{resource}"
        self.stoker.until(lambda: bool(self.heat("GET", path).body["resource"]["physical_resource_id"]))

    def metadata(self, stack: str, resource: str = "server") -> dict[str, Any]:
        return dict(self.heat("GET", f"{stack}/resources/{resource}/metadata").body["metadata"])

    def users(self) -> set[str]:
        """Names of those that came into the domain since."""
        found = in_domain(self.keystone, "users")
        return {found[id] for id in found.keys() - self.left["users"].keys()}

    def projects(self) -> set[str]:
        """Ids of those that came into the domain since."""
        return set(in_domain(self.keystone, "projects").keys() - self.left["projects"].keys())

    def log_in(self, section: Mapping[str, Any]) -> str:
        """Return a token for what an agent was told."""
        auth = v3.Password(
            auth_url=section["auth_url"],
            user_id=section["user_id"],
            password=section["password"],
            project_id=section["project_id"],
        )
        return str(Session(auth=auth).get_token())


def in_domain(keystone: Keystone, kind: str) -> dict[str, str]:
    """The names of the users or projects in the domain of stacks, by id."""
    domain = keystone.named("domains", DOMAIN)["id"]
    return {each["id"]: each["name"] for each in keystone.request("GET", f"/{kind}?domain_id={domain}")[kind]}


#: What the kind of database makes no difference to: a Keystone takes long.
ON_ONE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def people(keystone: Keystone, database_url: str, tmp_path) -> Iterator[People]:
    with served(tmp_path, *flags(keystone, tmp_path, keystone_cache_seconds="1"), database=database_url) as stoker:
        yield People.at(keystone, stoker, "owners")


def machine(transport: str = "POLL_SERVER_HEAT") -> dict[str, Any]:
    return server(software_config_transport=transport)


def one_of_each() -> dict[str, Any]:
    return template(
        {
            "server": machine(),
            "config": config(outputs=("said",)),
            "run": deployment(signal_transport="HEAT_SIGNAL"),
            "handle": define("OS::Heat::WaitConditionHandle", signal_transport="HEAT_SIGNAL"),
        },
        outputs={
            "said": {"value": {"get_attr": ["run", "said"]}},
            "how": {"value": {"get_attr": ["handle", "signal"]}},
        },
    )


def inputs(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in entry["inputs"]}


def test_stack_users_log_in_read_metadata_signal_and_are_deleted(people: People, keystone: Keystone):
    stack = people.create_stack("each", one_of_each())
    people.there(stack, "run")
    assert len(people.users()) == 3
    [project] = people.projects()
    assert people.heat("GET", "/stacks").body["stacks"][0]["stack_user_project_id"] == project

    told = people.metadata(stack)
    section = told["os-collect-config"]["heat"]
    assert (section["auth_url"], section["project_id"]) == (keystone.url, project)
    reading = people.log_in(section)
    for shown in (project, people.project):
        own = people.ask("GET", f"{stack}/resources/server/metadata", reading, shown)
        derived = own.body["metadata"]["deployments"]  # with the credentials that people are not shown
        assert [each["id"] for each in derived] == [each["id"] for each in told["deployments"]]
        assert people.ask("GET", f"{stack}/resources/run/metadata", reading, shown).status == 403
        assert people.ask("GET", "/stacks", reading, shown).status == 403

    said = inputs(derived[0])
    signalling = people.log_in(
        {
            "auth_url": said["deploy_auth_url"],
            "user_id": said["deploy_user_id"],
            "password": said["deploy_password"],
            "project_id": said["deploy_project_id"],
        }
    )
    assert said["deploy_username"] in people.users()
    result = {"said": "done", "deploy_status_code": 0}
    path = f"{stack}/resources/run/signal"
    assert people.ask("POST", path, reading, project, result).status == 403
    assert people.ask("POST", path, signalling, project, result).status == 200
    people.await_stack(stack)
    outputs = people.outputs(stack)
    assert outputs["said"] == "done"
    handle = json.loads(outputs["how"])
    headers = {"X-Auth-Token": str(people.log_in(handle))}
    path = handle["alarm_url"].removeprefix(people.stoker.url)
    assert people.stoker.request("POST", path, {"data": "word"}, headers).status == 200
    path = path.replace(f"/v1/{people.project}/", f"/v1/{handle['project_id']}/")
    assert people.stoker.request("POST", path, {"data": "word"}, headers).status == 200

    people.delete(stack)
    people.stoker.until(lambda: people.ask("GET", f"{stack}/resources/server/metadata", reading, project).status == 401)
    with pytest.raises(exceptions.Unauthorized):
        people.log_in(section)


@ON_ONE
def test_stack_users_are_disabled_while_their_stack_is_suspended(people: People, keystone: Keystone):
    """A user that Keystone's administrator has deleted is created again."""
    stack = people.create_stack("resting", template({"server": machine()}))
    people.await_stack(stack)
    section = people.metadata(stack)["os-collect-config"]["heat"]
    token = people.log_in(section)

    def act(action: str) -> None:
        people.heat("POST", f"{stack}/actions", {action: None})
        people.await_stack(stack, f"{action.upper()}_COMPLETE")

    def logs_in() -> bool:
        try:
            people.log_in(section)
        except exceptions.Unauthorized:
            return False
        return True

    act("suspend")
    people.stoker.until(lambda: not logs_in())
    path = f"{stack}/resources/server/metadata"
    people.stoker.until(lambda: people.ask("GET", path, token, people.project).status == 401)
    act("resume")
    people.log_in(section)  # at once: the resource has waited for that
    # Keystone counts in seconds: a token of the second in which the user was disabled stays revoked.
    people.stoker.until(lambda: people.ask("GET", path, people.log_in(section), people.project).status == 200)
    keystone.request("DELETE", f"/users/{section['user_id']}")
    act("suspend")
    act("resume")
    after = people.metadata(stack)["os-collect-config"]["heat"]
    assert after["user_id"] != section["user_id"]
    people.log_in(after)
    people.delete(stack)


@ON_ONE
def test_a_stack_user_is_created_when_the_transport_needs_one(people: People):
    stack = people.create_stack("changing", template({"server": machine("POLL_SERVER_CFN")}))
    people.await_stack(stack)
    assert (people.users(), people.projects()) == (set(), set())
    assert people.heat("PUT", stack, {"template": template({"server": machine("ZAQAR_MESSAGE")})}).status == 202
    people.await_stack(stack, "UPDATE_COMPLETE")
    told = people.metadata(stack)["os-collect-config"]
    assert told["collectors"] == ["zaqar", "local"]
    assert set(told["cfn"].values()) == {None}
    token = people.log_in(told["zaqar"])
    headers = {"X-Auth-Token": token, "X-Project-Id": told["zaqar"]["project_id"], "Client-ID": "0" * 32}
    path = f"/messaging/v2/queues/{told['zaqar']['queue_id']}/messages?echo=true"
    people.stoker.until(lambda: bool(people.stoker.request("GET", path, headers=headers).body["messages"]))
    people.delete(stack)


@ON_ONE
def test_a_tree_of_stacks_shares_one_user_project(people: People):
    handle = define("OS::Heat::WaitConditionHandle", signal_transport="HEAT_SIGNAL")
    group = define("OS::Heat::ResourceGroup", count=6, resource_def=handle)
    stack = people.create_stack("tree", template({"group": group, "alone": handle}))
    people.await_stack(stack)
    assert len(people.users()) == 7
    assert len(people.projects()) == 1
    group["properties"]["count"] = 2
    people.heat("PUT", stack, {"template": template({"group": group, "alone": handle})})
    people.await_stack(stack, "UPDATE_COMPLETE")
    people.stoker.until(lambda: len(people.users()) == 3)
    people.delete(stack)


@ON_ONE
def test_an_abandoned_stack_leaves_no_user(people: People):
    stack = people.create_stack("abandoned", template({"server": machine()}))
    people.await_stack(stack)
    left = people.heat("DELETE", f"{stack}/abandon").body
    people.stoker.until(lambda: not people.users() and not people.projects())
    asked = {"stack_name": "adopted", "template": left["template"], "adopt_stack_data": json.dumps(left)}
    made = people.heat("POST", "/stacks", asked)
    assert made.status == 201, made.raw
    adopted = f"/stacks/adopted/{made.body['stack']['id']}"
    people.await_stack(adopted, "ADOPT_COMPLETE")
    people.log_in(people.metadata(adopted)["os-collect-config"]["heat"])
    people.delete(adopted)


def test_stacks_wait_for_an_unavailable_keystone(keystone: Keystone, database_url: str, tmp_path):
    with ExitStack() as running:
        network = running.enter_context(faulty_line(keystone.port))
        settings = flags(keystone, tmp_path, keystone_auth_url=f"{network.url}/v3", keystone_cache_seconds="600")
        stoker = running.enter_context(served(tmp_path, *settings, database=database_url))
        people = People.at(keystone, stoker, "patient")
        renamed = machine()
        renamed["properties"]["name"] = "another"
        network.go()
        # The token is one that Stoker has not seen.
        assert people.heat("GET", "/stacks").status == 503
        network.come()
        polled = people.create_stack("polled", template({"server": machine("POLL_SERVER_CFN")}))
        people.await_stack(polled)
        known = people.metadata(polled)["os-collect-config"]
        network.go()
        stack = people.create_stack("waiting", template({"server": machine()}))
        gone = people.create_stack("given-up", template({"server": machine("ZAQAR_MESSAGE")}))
        for path, said in ((stack, renamed), (polled, machine("ZAQAR_MESSAGE"))):
            assert people.heat("PUT", path, {"template": template({"server": said})}).status == 202
            assert people.stack(path)["stack_status"] == "UPDATE_IN_PROGRESS"
        # Until there is a user the agent goes on as it did.
        assert people.metadata(polled)["os-collect-config"] == known
        people.heat("DELETE", gone)
        people.stoker.until(lambda: people.stack(gone)["stack_status"] == "DELETE_COMPLETE")
        stoker.kill9()
        network.come()
        stoker.restart()
        assert people.await_stack(stack, "UPDATE_COMPLETE")
        assert people.heat("GET", f"{stack}/resources/server").body["resource"]["attributes"]["name"] == "another"
        people.await_stack(polled, "UPDATE_COMPLETE")
        people.log_in(people.metadata(polled)["os-collect-config"]["zaqar"])
        people.stoker.until(lambda: len(people.users()) == 2)
        network.go()
        for path in (stack, polled):
            assert people.heat("DELETE", path).status == 204
            people.stoker.until(lambda path=path: people.stack(path)["stack_status"] == "DELETE_COMPLETE")
        network.come()
        people.stoker.until(lambda: not people.users() and not people.projects(), 60)


def test_default_transports_may_need_stack_users(keystone: Keystone, tmp_path):
    defaults = {
        "default_software_config_transport": "POLL_SERVER_HEAT",
        "default_deployment_signal_transport": "HEAT_SIGNAL",
    }
    with served(tmp_path, *flags(keystone, tmp_path, **defaults)) as stoker:
        people = People.at(keystone, stoker, "owners")
        stack = people.create_stack("defaults", template({"server": server(), "config": config(), "run": deployment()}))
        people.there(stack, "run")
        told = people.metadata(stack)
        people.log_in(told["os-collect-config"]["heat"])
        assert inputs(told["deployments"][0])["deploy_username"] in people.users()
        people.delete(stack)


def test_transports_with_users_are_refused_without_a_domain_administrator(keystone: Keystone, tmp_path):
    with served(tmp_path, *flags(keystone, tmp_path, stack_domain_cloud="")) as stoker:
        people = People.at(keystone, stoker, "owners")
        asked = {"stack_name": "none", "template": template({"server": machine()})}
        refused = people.heat("POST", "/stacks", asked)
        assert refused.status == 400
        assert "set stack_domain_cloud" in refused.body["error"]["message"]
        people.await_stack(people.create_stack("cfn", template({"server": machine("POLL_SERVER_CFN")})))
        # Whose agent it is that comes to a queue is known when there is a server.
        upstreams = people.create_stack("queue", template({"server": machine("ZAQAR_MESSAGE")}))
        assert "set stack_domain_cloud" in people.await_stack(upstreams, "CREATE_FAILED")["stack_status_reason"]
        ours = server(software_config_transport="ZAQAR_MESSAGE", agent="stoker")
        run = deployment(signal_transport="ZAQAR_SIGNAL")
        stack = people.create_stack("ours", template({"server": ours, "config": config(), "run": run}))
        with own_agent(tmp_path / "agent", {"zaqar": people.metadata(stack)["os-collect-config"]["zaqar"]}) as agent:
            agent.start()
            people.await_stack(stack)
        assert not people.users()


def test_a_refused_login_of_the_domain_administrator_fails_the_stack(keystone: Keystone, tmp_path):
    with served(tmp_path, *flags(keystone, tmp_path, domain=(DOMAIN, DOMAIN_ADMIN[0], "wrong"))) as stoker:
        people = People.at(keystone, stoker, "owners")
        stack = people.create_stack("refused", template({"server": machine()}))
        reason = people.await_stack(stack, "CREATE_FAILED")["stack_status_reason"]
        assert "resources.server: Keystone refuses the login of stack_domain_cloud (401)" in reason
        assert people.heat("DELETE", stack).status == 204


def test_many_stack_users_are_created_at_once(people: People):
    """One project a stack, whoever is first."""
    handle = define("OS::Heat::WaitConditionHandle", signal_transport="HEAT_SIGNAL")
    said = template({f"h{i}": handle for i in range(4)})
    made = call_together(3, lambda number: people.create_stack(f"many-{number}", said))
    for stack in made:
        people.await_stack(stack)
    assert (len(people.users()), len(people.projects())) == (12, 3)
    people.delete(*made)
