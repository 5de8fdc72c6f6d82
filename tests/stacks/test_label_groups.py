"""Groups over labels: who gets them joins, who loses them leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.model.errors import ActionInProgress, StackValidationFailed
from stoker.model.stack import Action
from stoker.servers.presence import store_facts
from stoker.stacks import export
from stoker.store import audit, resources, server_lists, servers
from stoker.store.sql import sql
from stoker.types.label_groups import REFRESH, REFRESH_DEADLINE
from support.fleet import Fleet
from support.stacks import tell
from support.statements import recorded_statements
from support.templates import HANDLE, config, define, deployment, deployment_group, server, template, wait

WEB = {"role": "web"}
NIGHT = {"cron": "0 2 * * *", "minutes": 120}
DOCS = Path(__file__).parents[2] / "docs" / "groups.md"


def enrolled(heat, name, labels=WEB, **more):
    (server,) = Fleet(heat).enroll(name, labels=labels, **more)
    return server.id


def label(heat, id, **labels):
    heat.store.write(lambda tx: servers.change(tx, id, labels=labels))


def fleet(policy=None, labels=WEB, more=None, **properties):
    group = deployment_group(labels=labels, **properties)
    if policy:
        group["update_policy"] = {"rolling_update": policy}
    said = {"config": config(outputs=("result",)), "group": group, **(more or {})}
    return template(said, outputs={"results": {"value": {"get_attr": ["group", "result"]}}})


def running(heat):
    return sorted((heat.read(resources.find, each.resource_id).name, each.action) for each in heat.running())


def create(heat, *names, **options):
    """A complete stack, whose group has a server of each name."""
    ids = [enrolled(heat, name) for name in names]
    stack = heat.create(fleet(**options))
    heat.report_all()
    return stack, *ids


def join(heat, name):
    """Enroll a server, which the group takes up unless something else goes on."""
    id = enrolled(heat, name)
    heat.work.run(REFRESH)
    return id


def create_growing(heat):
    """A complete stack, whose group begins to take up a second server."""
    stack, _ = create(heat, "one")
    join(heat, "two")
    return stack


def test_many_new_servers_need_one_refresh_of_the_group(heat):
    heat.create(fleet(), "group")
    machines = {f"s{i}": define("OS::Heat::DeployedServer", name=f"s{i}", labels=WEB) for i in range(5)}
    with recorded_statements(heat.store) as statements:
        heat.create(template(machines), "machines")
    assert sum("FROM selectors" in statement for statement in statements) == 1
    assert heat.work.kinds().count(REFRESH) == 1
    enrolled(heat, "one more")
    assert heat.work.kinds().count(REFRESH) == 1
    heat.work.run(REFRESH)
    assert len(running(heat)) == 6


def test_servers_with_all_labels_that_the_selector_matches_are_members(heat):
    enrolled(heat, "one", {"role": "web", "zone": "a"})
    enrolled(heat, "two", {"role": "web", "zone": "b"})
    enrolled(heat, "three", {"role": "db", "zone": "a"})
    enrolled(heat, "other", {"role": "web", "zone": "a"}, project_id="q")
    stack = heat.create(fleet(labels={"role": "web", "zone": "a"}))
    assert running(heat) == [("one", "CREATE")]
    heat.report_all(result="r")
    assert heat.outputs(heat.settled(stack.id)) == {"results": {"one": "r"}}

    heat.create(fleet(selector="zone in (b, c)"), "selected")
    assert running(heat) == [("two", "CREATE")], "labels and a selector are both required"


def test_servers_join_and_leave_with_their_labels(heat):
    stack, first = create(heat, "one", actions=["CREATE", "DELETE"])
    second = enrolled(heat, "two", {})
    assert heat.work.run(REFRESH) == 0, "no group selects it"
    label(heat, first, role="web", color="red")
    enrolled(heat, "three", {"role": "db"})
    assert heat.work.run(REFRESH) == 0
    label(heat, second, role="web", zone="a")
    assert heat.work.run(REFRESH) == 1
    group = heat.resources(stack)["group"]
    assert (group.action, str(group.status), group.reason) == (
        Action.UPDATE,
        "IN_PROGRESS",
        "servers came or went by their labels or facts",
    )
    assert (heat.settled(stack.id).action, str(heat.settled(stack.id).status)) == (Action.CREATE, "COMPLETE")
    assert running(heat) == [("two", "CREATE")]
    heat.report_all(result="new")
    assert heat.states(stack)["group"] == "UPDATE_COMPLETE"
    assert heat.outputs(stack)["results"] == {"one": None, "two": "new"}

    label(heat, first, zone="a")
    heat.work.run(REFRESH)
    assert running(heat) == [("one", "DELETE")]
    heat.report_all()
    assert list(heat.resources(heat.nested(stack, "group"))) == ["two"]
    assert heat.states(stack)["group"] == "UPDATE_COMPLETE"
    assert [each for each in heat.events(stack) if each[0] == "group"][-4:] == [
        ("group", "UPDATE_IN_PROGRESS"),
        ("group", "UPDATE_COMPLETE"),
        ("group", "UPDATE_IN_PROGRESS"),
        ("group", "UPDATE_COMPLETE"),
    ]

    heat.store.write(lambda tx: servers.delete(tx, second))  # a removed server runs nothing
    heat.work.run(REFRESH)
    assert heat.states(stack)["group"] == "UPDATE_COMPLETE"
    assert heat.deployments() == []


def report_facts(heat, id, **facts):
    heat.store.write(lambda tx: store_facts(tx, id, facts))


def test_servers_join_and_leave_with_their_facts(heat):
    first, second = enrolled(heat, "one"), enrolled(heat, "two")
    selector = "role=web and os.family=debian"
    stack = heat.create(fleet(labels=None, selector=selector, actions=["CREATE", "DELETE"]))
    assert str(stack.status) == "COMPLETE"
    report_facts(heat, first, os={"family": "redhat"}, memory_mb=5)
    assert heat.work.run(REFRESH) == 0
    report_facts(heat, second, os={"family": "debian"}, memory_mb=5)
    assert heat.work.run(REFRESH) == 1
    assert running(heat) == [("two", "CREATE")]
    heat.report_all()
    report_facts(heat, second, os={"family": "debian"}, memory_mb=6)  # no selector names this fact
    assert heat.work.run(REFRESH) == 0
    label(heat, first, role="web", zone="a")
    assert heat.work.run(REFRESH) == 0
    report_facts(heat, second, os={"family": "suse"})
    assert heat.work.run(REFRESH) == 1
    assert running(heat) == [("two", "DELETE")]
    heat.report_all()
    assert list(heat.resources(heat.nested(stack, "group"))) == []


def test_a_group_over_missing_labels_follows_new_and_removed_servers(heat):
    heat.create(fleet(labels=None, selector="not role=db"))
    enrolled(heat, "database", {"role": "db"})
    assert heat.work.run(REFRESH) == 0
    id = enrolled(heat, "plain", {})
    assert heat.work.run(REFRESH) == 1
    assert running(heat) == [("plain", "CREATE")]
    heat.report_all()
    heat.store.write(lambda tx: servers.delete(tx, id))
    assert heat.work.run(REFRESH) == 1
    assert heat.deployments() == []


def test_new_members_join_in_batches(heat):
    stack, _ = create(heat, "a", policy={"max_batch_size": 2})
    for name in "bcdef":
        enrolled(heat, name)
    heat.work.run(REFRESH)
    turns = []
    while waiting := heat.running():
        turns.append([name for name, _ in running(heat)])
        for each in waiting:
            heat.report(each)
    assert turns == [["b", "c"], ["d", "e"], ["f"]]
    assert heat.states(stack)["group"] == "UPDATE_COMPLETE"


def test_servers_labeled_during_an_operation_of_the_group_join_afterwards(heat):
    enrolled(heat, "one")
    stack = heat.create(fleet())
    join(heat, "two")
    assert running(heat) == [("one", "CREATE")]
    heat.report_all()
    assert heat.work.run(REFRESH) > 0
    assert running(heat) == [("two", "CREATE")]
    join(heat, "three")
    assert running(heat) == [("two", "CREATE")]  # one after the other
    heat.report_all()
    heat.work.run(REFRESH)
    heat.report_all()
    assert set(heat.resources(heat.nested(stack, "group"))) == {"one", "two", "three"}


def test_servers_labeled_while_the_stack_is_busy_or_suspended_join_afterwards(heat):
    stack, _ = create(heat, "one", more={"handle": HANDLE, "slow": wait()})
    assert heat.states(stack)["group"] == "CREATE_COMPLETE"
    join(heat, "two")
    assert running(heat) == []
    tell(heat, stack, "handle", status="SUCCESS")
    assert str(heat.settled(stack.id).status) == "COMPLETE"
    assert heat.work.run(REFRESH) == 1
    assert running(heat) == [("two", "CREATE")]
    heat.report_all()

    heat.visit(stack, Action.SUSPEND)
    join(heat, "three")
    assert running(heat) == []
    heat.visit(stack, Action.RESUME)
    heat.work.run(REFRESH)
    assert running(heat) == [("three", "CREATE")]


@pytest.mark.parametrize("action", [Action.SUSPEND, Action.CHECK])
def test_nothing_is_done_to_a_whole_stack_while_a_group_takes_somebody_up(heat, action):
    stack = create_growing(heat)
    with pytest.raises(ActionInProgress, match="Group group of stack s is changing its members"):
        heat.visit(stack, action)
    heat.report_all()
    assert str(heat.visit(stack, action).status) == "COMPLETE"


def test_a_stack_update_joins_a_group_that_takes_somebody_up(heat):
    stack = create_growing(heat)
    stack = heat.update(stack, fleet(more={"more": define("OS::Heat::Value", value=1)}))
    assert str(stack.status) == "IN_PROGRESS"
    heat.report_all()
    assert str(heat.settled(stack.id).status) == "COMPLETE"
    assert len(heat.deployments()) == 2


def test_a_group_that_failed_is_left_to_the_next_update(heat):
    enrolled(heat, "one")
    stack = heat.create(fleet())
    heat.report_all(deploy_status_code=1)
    join(heat, "two")
    assert running(heat) == []
    stack = heat.update(stack, fleet())
    assert running(heat) == [("one", "CREATE"), ("two", "CREATE")]
    heat.report_all()
    assert str(heat.settled(stack.id).status) == "COMPLETE"


def test_a_failure_of_who_came_is_the_groups_and_not_the_stacks(heat):
    stack = create_growing(heat)
    heat.report_all(deploy_status_code=1)
    assert heat.states(stack)["group"] == "UPDATE_FAILED"
    assert "resources.two: Deployment to server failed" in heat.resources(stack)["group"].reason
    assert str(heat.settled(stack.id).status) == "COMPLETE"


def test_a_member_that_never_reports_fails_after_the_timeout(heat):
    stack = create_growing(heat)
    assert heat.work.run(REFRESH_DEADLINE) == 1
    group = heat.resources(stack)["group"]
    assert (str(group.status), group.reason) == ("FAILED", "Error: resources.group: Timed out")
    assert running(heat) == []


def test_the_timeout_of_a_member_starts_when_its_window_opens(heat, clock):
    stack, _ = create(heat, "one")
    two = enrolled(heat, "two")
    heat.store.write(lambda tx: servers.change(tx, two, policy={"maintenance_windows": [NIGHT]}))
    heat.work.run(REFRESH)
    clock.until(heat.work, "2026-05-02T02:59")
    assert str(heat.resources(stack)["group"].status) == "IN_PROGRESS"
    clock.until(heat.work, "2026-05-02T03:01")
    assert "Timed out" in heat.resources(stack)["group"].reason


def test_two_servers_of_one_name_stay_two_members(heat):
    stack, first = create(heat, "same")
    second = join(heat, "same")
    heat.report_all()
    assert set(heat.resources(heat.nested(stack, "group"))) == {"same", f"same-{second[:8]}"}
    heat.store.write(lambda tx: servers.delete(tx, first))
    heat.work.run(REFRESH)
    assert running(heat) == []
    assert set(heat.resources(heat.nested(stack, "group"))) == {f"same-{second[:8]}"}


def test_a_deleted_or_abandoned_group_is_not_refreshed(heat):
    stack, first = create(heat, "one")
    stack = heat.update(stack, fleet(labels=None, servers={"one": first}))
    heat.report_all()
    assert heat.read(server_lists.selectors_of, "p") == []
    stack = heat.update(stack, fleet())
    heat.report_all()
    assert len(heat.read(server_lists.selectors_of, "p")) == 1
    assert str(heat.delete(stack).status) == "COMPLETE"
    assert heat.read(server_lists.selectors_of, "p") == []

    stack = heat.create(fleet(), "abandoned")
    heat.report_all()
    heat.store.write(lambda tx: export.abandon(tx, heat.engine, stack.id))
    assert heat.read(server_lists.selectors_of, "p") == []
    enrolled(heat, "two")
    assert heat.work.run(REFRESH) == 0


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"servers": {"a": "x"}}, "exactly one of servers and labels .* both are given"),
        ({"labels": None}, "exactly one of servers and labels .* neither is given"),
        ({"labels": {}}, "labels: at least one is needed"),
        ({"labels": {"role": 1}}, "labels.role: a label's value must be a string"),
        ({"labels": None, "selector": "role"}, "the selector, column 5: expected"),
        ({"labels": None, "selector": "a=b", "servers": {"a": "x"}}, "exactly one of servers and labels .* both"),
    ],
)
def test_a_group_without_servers_or_labels_is_refused(heat, properties, sentence):
    with pytest.raises(StackValidationFailed, match=f"resources.group.properties: {sentence}"):
        heat.create(fleet(**properties))


def test_a_group_in_a_nested_stack_is_refreshed(heat):
    inner = json.dumps(fleet())
    stack = heat.create(template({"inner": {"type": "inner.yaml"}}), files={"inner.yaml": inner})
    assert str(stack.status) == "COMPLETE"
    enrolled(heat, "one")
    heat.work.run(REFRESH)
    assert running(heat) == [("one", "CREATE")]
    heat.report_all()
    assert heat.states(heat.nested(stack, "inner"))["group"] == "UPDATE_COMPLETE"


def test_the_template_in_the_documentation_works(heat):
    enrolled(heat, "one")
    text = DOCS.read_text().split("```yaml\n")[2].partition("```")[0]
    stack = heat.create(text)
    enrolled(heat, "two")
    heat.report_all()
    heat.work.run(REFRESH)
    assert running(heat) == [("two", "CREATE")]
    heat.report_all()
    assert str(heat.settled(stack.id).status) == "COMPLETE"


def test_a_deployment_is_named_by_its_outermost_stack_and_the_path_in_it(heat):
    group = deployment_group(servers={"one": {"get_resource": "server"}})
    resources = {"config": config(), "server": server(), "alone": deployment(), "group": group}
    heat.create(template(resources), name="shop")

    with heat.store.read() as tx:
        ids = [row[0] for row in tx.fetch_all(sql("SELECT id FROM deployments"), {})]
        names = audit.names_of_all(tx, ids).values()

    assert {(each["stack_name"], each["resource_name"]) for each in names} == {("shop", "alone"), ("shop", "group/one")}
