"""What those who ask for a server's document have not been told of yet: only what is in it."""

from __future__ import annotations

from dataclasses import replace

from stoker.store import deployments, runs
from support.deploying import begin


def undelivered(store, *whose):
    with store.read() as tx:
        return [id for id, _ in runs.undelivered(tx, "s", *whose)]


def test_of_a_server_that_is_nobodys_each_project_is_told_of_its_own(store):
    made = begin(store, "a")
    store.write(lambda tx: deployments.add(tx, replace(made, id="theirs", project_id="q")))
    store.write(lambda tx: runs.add(tx, replace(made, id="theirs"), state="WAITING", asked_by=None, inputs="{}"))
    assert undelivered(store, "p") == [made.id]
    assert undelivered(store, "q") == ["theirs"]
    assert undelivered(store, "r") == []
    assert sorted(undelivered(store)) == sorted([made.id, "theirs"])
    with store.read() as tx:
        assert len(deployments.bodies(tx, "s", "p")) == len(deployments.bodies(tx, "s", "q")) == 1


def test_a_run_that_is_known_is_not_added_again(store):
    made = begin(store, "a")
    store.write(lambda tx: runs.add(tx, made, state="RUNNING", asked_by="bob", inputs="{}"))
    second = replace(made, config_id="other")
    store.write(lambda tx: runs.add(tx, second, state="WAITING", asked_by=None, inputs="{}"))
    with store.read() as tx:
        found = runs.listed(tx, made.id)
    assert [(each.number, each.config_id, each.asked_by) for each in found] == [
        (2, "other", None),
        (1, made.config_id, None),
    ]
