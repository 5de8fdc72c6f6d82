"""
Whatever is created, changed, run, cancelled, retained and deleted, in any order: once everything is deleted, no table
that belongs to a project has a row, and no job waits.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from stoker.backends import garbage_collector
from stoker.serve import site as serve_site
from stoker.store import stacks
from stoker.store.maintenance import in_batches
from stoker.store.open import Store
from support import databases, query, schema
from support.in_process import Inside
from support.search import examples
from support.templates import config, define, deployment, template
from support.work import ManualWork

pytestmark = pytest.mark.slow

#: People and their logins; what is kept on purpose when a project's things are deleted; what the site knows of itself.
KEPT = {
    *("projects", "users", "assignments", "tokens", "application_credentials"),
    *("site_properties", "audit", "jobs", "accounts"),
}
SERVER = {"type": "OS::Heat::DeployedServer"}
SIGNALS = ("CFN_SIGNAL", "HEAT_SIGNAL", "TEMP_URL_SIGNAL", "ZAQAR_SIGNAL", "STOKER_SIGNAL", "NO_SIGNAL")
CARRIERS = ("POLL_SERVER_CFN", "POLL_TEMP_URL", "ZAQAR_MESSAGE", "STOKER_PUSH")
#: Deployments of REST clients name any server, whether there is one or not.
ELSEWHERE = "a-server-of-ones-own"


@st.composite
def templates(draw: Any) -> dict[str, Any]:
    """A server, deployments on it that report in any way, and other resources that leave things somewhere."""

    def kept(resource: dict[str, Any]) -> dict[str, Any]:
        return {**resource, **({"deletion_policy": "Retain"} if draw(st.integers(0, 3)) == 0 else {})}

    server = {**SERVER, "properties": {"software_config_transport": draw(st.sampled_from(CARRIERS))}}
    resources: dict[str, Any] = {"config": config(draw(st.sampled_from("ab"))), "server": kept(server)}
    for name in draw(st.lists(st.sampled_from("xyz"), unique=True, max_size=2)):
        properties: dict[str, Any] = {"signal_transport": draw(st.sampled_from(SIGNALS))}
        if draw(st.booleans()):
            properties["timeout"] = 60
        properties["actions"] = draw(st.sampled_from([["CREATE"], ["CREATE", "UPDATE", "DELETE", "SUSPEND"]]))
        resources[name] = kept(deployment(**properties))
    for extra in draw(st.lists(st.sampled_from(sorted(EXTRAS)), unique=True, max_size=2)):
        resources[extra] = kept(EXTRAS[extra])
        if extra == "wait":
            resources["handle"] = kept({"type": "OS::Heat::WaitConditionHandle"})
    return template(resources)


_MEMBER = deployment()
EXTRAS: dict[str, dict[str, Any]] = {
    "group": define("OS::Heat::ResourceGroup", count=2, resource_def=_MEMBER),
    "servers": define("OS::Heat::ResourceGroup", count=2, resource_def=SERVER),
    "labeled": define("OS::Heat::SoftwareDeploymentGroup", config={"get_resource": "config"}, labels={"role": "web"}),
    "wait": define("OS::Heat::WaitCondition", handle={"get_resource": "handle"}, timeout=300),
    "signals": {"type": "OS::Heat::SwiftSignalHandle"},
    "queue": {"type": "OS::Zaqar::Queue"},
    "random": {"type": "OS::Heat::RandomString"},
}
#: Which of those that there are.
which = st.integers(0, 5)


class Project:
    """The API of one Stoker, as one user calls it. Refusals are fine, faults are not."""

    def __init__(self, inside: Inside, work: ManualWork) -> None:
        self.inside = inside
        self.work = work

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.inside.client.request(
            method, path, json=body, headers={**self.inside.headers, **headers}, follow_redirects=True
        )
        assert answer.status_code < 500, (method, path, body, answer.text)
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.json() if is_json and answer.content and answer.status_code < 400 else {}

    def heat(self, method: str, path: str, body: Any = None) -> Any:
        return self.call(method, f"/v1/{self.inside.project}{path}", body)

    def listed(self, noun: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.heat("GET", f"/{noun}")[noun]
        return found

    def paths(self) -> list[str]:
        return [f"/stacks/{each['stack_name']}/{each['id']}" for each in self.listed("stacks")]

    def run_jobs(self, *, timed: bool = False) -> None:
        """``timed``: also those that are due later, once."""
        soon = datetime.now(UTC) + timedelta(seconds=10)
        for _ in range(50):
            due = [job for job in self.work.jobs if timed or job[3] is None or job[3] < soon]
            if not due:
                return
            for job in due:
                if job in self.work.jobs:
                    self.work.jobs.remove(job)
                    self.work.handlers[job[0]](job[2])
            timed = False
        raise AssertionError(f"jobs without end: {self.work.jobs}")

    def delete_everything(self) -> None:
        self.delete_all("software_schedules")
        for _ in range(30):
            paths = self.paths()
            for path in paths:
                self.heat("DELETE", path)
            for each in self.listed("software_triggers"):
                self.heat("POST", f"/software_triggers/{each['id']}/cancel", {"force": True})
            for each in self.listed("software_deployments"):
                if each["status"] == "IN_PROGRESS":
                    self.heat("PUT", f"/software_deployments/{each['id']}", {"status": "COMPLETE"})
            self.run_jobs()
            if not paths:
                break
        assert not self.paths(), [self.heat("GET", path) for path in self.paths()]
        for noun in ("software_triggers", "software_deployments", "software_configs", "servers"):
            self.delete_all(noun)
            self.run_jobs()
        self.delete_stores()

    def delete_all(self, noun: str) -> None:
        for each in self.listed(noun):
            self.heat("DELETE", f"/{noun}/{each['id']}")

    def delete_stores(self) -> None:
        """Containers and queues that are a user's own, or that the template said to retain."""
        account = f"/object-store/v1/AUTH_{self.inside.project}"
        for container in self.names(f"{account}?format=json"):
            for name in self.names(f"{account}/{container}?format=json"):
                self.call("DELETE", f"{account}/{container}/{name}")
            self.call("DELETE", f"{account}/{container}")
        for queue in self.call("GET", "/messaging/v2/queues?limit=20", **CLIENT).get("queues", ()):
            self.call("DELETE", f"/messaging/v2/queues/{queue['name']}", **CLIENT)

    def names(self, path: str) -> list[str]:
        return [each["name"] for each in self.call("GET", path) or ()]

    def left(self) -> dict[str, int]:
        store = self.inside.store
        with store.read() as tx:
            end = tx.now.replace(year=tx.now.year + 1)
        in_batches(store, lambda tx, most: stacks.purge(tx, end, most))
        with store.read() as tx:
            counts = {table: query.count(tx, table) for table in schema.TABLES if table not in KEPT}
        return {name: count for name, count in counts.items() if count}


CLIENT = {"Client-ID": "6f3a2a9c-6f0e-4b8e-9c59-0d9c8b5a7a11"}


class AnyOrder(RuleBasedStateMachine):
    project: Project
    #: What a stack that was abandoned left for another to adopt, if that never comes, is what ``db sweep`` is for.
    abandoned = False

    def one(self, noun: str, index: int) -> dict[str, Any] | None:
        found = self.project.listed(noun)
        return found[index % len(found)] if found else None

    def stack(self, index: int) -> str | None:
        paths = self.project.paths()
        return paths[index % len(paths)] if paths else None

    @rule(said=templates(), name=st.sampled_from("st"))
    def create_stack(self, said: Any, name: str) -> None:
        self.project.heat("POST", "/stacks", {"stack_name": name, "template": said})

    @rule(said=templates(), index=which)
    def update_stack(self, said: Any, index: int) -> None:
        if path := self.stack(index):
            self.project.heat("PUT", path, {"template": said})

    @rule(
        index=which,
        action=st.sampled_from(["suspend", "resume", "check", "cancel_update", "cancel_without_rollback"]),
    )
    def act_on_stack(self, index: int, action: str) -> None:
        if path := self.stack(index):
            self.project.heat("POST", f"{path}/actions", {action: None})

    @rule(index=which)
    def delete_stack(self, index: int) -> None:
        if path := self.stack(index):
            self.project.heat("DELETE", path)

    @rule(index=which)
    def abandon_stack(self, index: int) -> None:
        if path := self.stack(index):
            self.abandoned = True
            self.project.heat("DELETE", f"{path}/abandon")

    @rule(index=which, restore=st.booleans())
    def snapshot(self, index: int, restore: bool) -> None:
        if path := self.stack(index):
            found = self.project.heat("GET", f"{path}/snapshots").get("snapshots", [])
            if restore and found:
                self.project.heat("POST", f"{path}/snapshots/{found[0]['id']}/restore")
            else:
                self.project.heat("POST", f"{path}/snapshots", {"name": "s"})

    @rule(index=which, status=st.sampled_from(["COMPLETE", "COMPLETE", "FAILED", "IN_PROGRESS"]))
    def report(self, index: int, status: str) -> None:
        if one := self.one("software_deployments", index):
            self.project.heat("PUT", f"/software_deployments/{one['id']}", {"status": status})

    @rule(index=which, what=st.sampled_from(["cancel", "force", "retry", "delete", "config"]))
    def change_deployment(self, index: int, what: str) -> None:
        one = self.one("software_deployments", index)
        if one is None:
            return
        path = f"/software_deployments/{one['id']}"
        if what == "delete":
            self.project.heat("DELETE", path)
        elif what == "config":
            if other := self.one("software_configs", index + 1):
                self.project.heat("PUT", path, {"config_id": other["id"]})
        elif what == "retry":
            self.project.heat("POST", f"{path}/retry")
        else:
            self.project.heat("POST", f"{path}/cancel", {"force": what == "force"})

    @rule(index=which, delete=st.booleans())
    def change_config(self, index: int, delete: bool) -> None:
        one = self.one("software_configs", index)
        if delete and one is not None:
            self.project.heat("DELETE", f"/software_configs/{one['id']}")
        else:
            self.project.heat("POST", "/software_configs", {"group": "script", "config": "true"})

    @rule(index=which, transport=st.sampled_from([None, *SIGNALS]), status=st.sampled_from([None, "IN_PROGRESS"]))
    def create_deployment(self, index: int, transport: str | None, status: str | None) -> None:
        if one := self.one("software_configs", index):
            server = self.one("servers", index)
            body = {"config_id": one["id"], "server_id": server["id"] if server else ELSEWHERE, "timeout": 60}
            how = {"status": status} if transport is None else {"signal_transport": transport}
            self.project.heat("POST", "/software_deployments", {**body, **how})

    @rule(index=which, delete=st.booleans(), labels=st.sampled_from([{}, {"role": "web"}]))
    def change_server(self, index: int, delete: bool, labels: dict[str, str]) -> None:
        one = self.one("servers", index)
        if delete and one is not None:
            self.project.heat("DELETE", f"/servers/{one['id']}")
        elif one is not None:
            self.project.heat("PATCH", f"/servers/{one['id']}", {"labels": labels})
        else:
            self.project.heat("POST", "/servers", {"name": f"web{index}", "labels": labels})

    @rule(index=which, what=st.sampled_from(["create", "create", "cancel", "retry", "delete"]))
    def trigger(self, index: int, what: str) -> None:
        one = self.one("software_triggers", index)
        if what == "create" or one is None:
            config, servers = self.one("software_configs", index), self.project.listed("servers")
            if config is not None and servers:
                body = {"config_id": config["id"], "servers": [each["id"] for each in servers], "max_concurrent": 1}
                self.project.heat("POST", "/software_triggers", body)
        elif what == "delete":
            self.project.heat("DELETE", f"/software_triggers/{one['id']}")
        else:
            self.project.heat("POST", f"/software_triggers/{one['id']}/{what}")

    @rule(index=which, delete=st.booleans())
    def schedule(self, index: int, delete: bool) -> None:
        one, config = self.one("software_schedules", index), self.one("software_configs", index)
        if delete and one is not None:
            self.project.heat("DELETE", f"/software_schedules/{one['id']}")
        elif config is not None:
            body = {"config_id": config["id"], "servers": [each["id"] for each in self.project.listed("servers")]}
            self.project.heat(
                "POST", "/software_schedules", {"name": f"n{index}", "cron": "0 2 * * *", "trigger": body}
            )

    @rule(name=st.sampled_from("cd"))
    def use_stores(self, name: str) -> None:
        account = f"/object-store/v1/AUTH_{self.project.inside.project}"
        self.project.call("PUT", f"{account}/{name}")
        self.project.call("PUT", f"{account}/{name}/object", {"some": "data"})
        self.project.call("PUT", f"/messaging/v2/queues/{name}", {}, **CLIENT)
        message = {"messages": [{"body": 1, "ttl": 60}]}
        self.project.call("POST", f"/messaging/v2/queues/{name}/messages", message, **CLIENT)

    @rule(timed=st.booleans())
    def run_jobs(self, timed: bool) -> None:
        self.project.run_jobs(timed=timed)

    def teardown(self) -> None:
        self.project.delete_everything()
        if self.abandoned:
            # A published document is due again within the hour: that job finds no resource, and ends.
            self.project.run_jobs(timed=True)
            list(garbage_collector.collect(self.project.inside.store, {}, dry_run=False))
        assert self.project.left() == {}
        assert self.project.work.jobs == []


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def project(request, tmp_path_factory, sqlite_template):
    """One for all examples: each ends with nothing, so that the next begins with nothing."""
    folder, patch = tmp_path_factory.mktemp("lifecycle"), pytest.MonkeyPatch()
    work = ManualWork()
    patch.setattr(serve_site, "Work", lambda _: work)

    def opened(url: str):
        store = Store(url, keys=databases.keys)
        inside = Inside(folder, store)
        yield Project(inside, work)
        inside.close()
        store.close()

    try:
        if request.param == "sqlite":
            yield from opened(databases.sqlite_url(folder, sqlite_template))
        else:
            with databases.postgresql_url(request.getfixturevalue("postgresql_server")) as url:
                yield from opened(url)
    finally:
        patch.undo()


def test_after_anything_in_any_order_everything_can_be_deleted(project):
    class Machine(AnyOrder):
        pass

    Machine.project = project
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples(6),
            stateful_step_count=16,
            phases=(Phase.explicit, Phase.generate),  # to find the shortest failure takes minutes
        ),
    )
