"""What hooks record for undo: its owner, its order, and the records of earlier versions of the agent."""

from __future__ import annotations

import base64
import hashlib
import json
import os

import pytest

from stoker_agent import former_memory
from stoker_agent.hook_memory import Memory

GROUP = "file"
STACK = {"deploy_stack_id": "s/1", "deploy_resource_name": "r"}


def digest(*words):
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def memory(folder, deployment, **facts):
    return Memory.of(
        {"id": "c", "name": "motd", "deployment_id": deployment, **facts.pop("entry", {})}, facts, folder, GROUP
    )


def test_a_replacement_of_a_resource_takes_over_its_items(tmp_path):
    memory(tmp_path, "d1", **STACK).remember("file", "/a", was="absent")
    memory(tmp_path, "d2", **STACK).remember("file", "/a", was="file")
    assert [item.before for item in memory(tmp_path, "d2", **STACK).list("file")] == [{"was": "absent"}]
    assert memory(tmp_path, "d1").list() == []
    assert memory(tmp_path, "d3", **{**STACK, "deploy_resource_name": "other"}).list() == []


def test_the_original_goes_to_the_deployment_that_uses_the_item_next(tmp_path):
    first, second, third = (memory(tmp_path, name) for name in ("d1", "d2", "d3"))
    for number, owner in enumerate((first, second, third)):
        owner.remember("file", "/a", was=str(number))
    assert first.release(*first.list()) is False
    assert [[item.before["was"] for item in owner.list()] for owner in (first, second, third)] == [[], ["0"], ["2"]]
    assert third.release(*third.list()) is True


def test_a_trigger_records_nothing(tmp_path):
    owner, trigger = memory(tmp_path, "d1", **STACK), memory(tmp_path, "d2", **STACK, entry={"trigger_id": "t"})
    owner.remember("file", "/a", was="absent")
    trigger.remember("file", "/b", was="absent")
    assert trigger.list() == []
    assert [item.name for item in owner.list()] == ["/a"]


@pytest.mark.parametrize("facts", [{}, STACK], ids=["without a stack", "in a stack"])
def test_a_record_of_an_earlier_agent_is_undone(hook, tmp_path, facts):
    path = tmp_path / "motd"
    path.write_text("new\n")
    former = {"path": str(path), "content": base64.b64encode(b"old\n").decode(), "mode": 0o600}
    key = digest("s/1", "r") if facts else digest("app")
    state = hook.folder / "hooks" / "file" / f"{key[:32]}.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps({**former, "owner": os.getuid(), "group": os.getgid()}))
    if not facts:
        other = {**hook.entry({"path": str(tmp_path / "other")}), "deployment_id": "d2"}
        assert hook.run(other, mode="undo").changed is False, "of another deployment with a config of this name"
    entry = {**hook.entry({"path": str(path), "content": "new\n"}, **facts), "deployment_id": "d1"}
    assert hook.run(entry, mode="undo").changed is True
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("old\n", 0o600)
    assert not state.exists()


@pytest.mark.parametrize("facts", [{"deploy_server_id": "v"}, STACK], ids=["without a stack", "in a stack"])
def test_a_journal_of_earlier_steps_is_taken_over(tmp_path, monkeypatch, facts):
    monkeypatch.setattr(former_memory, "_JOURNALS", tmp_path / "journals")
    entries = [
        {"kind": "package", "name": "nginx"},
        {"kind": "file", "name": "/a", "content": "eA==", "mode": 0o644, "uid": 0, "gid": 0},
        {"kind": "file", "name": "/b", "content": None, "link": "/c"},
        {"kind": "service", "name": "n.service", "active": True, "enabled": False},
    ]
    key = digest("v", digest("[]")) if "deploy_server_id" in facts else digest("s/1", "r")
    tmp_path.joinpath("journals").mkdir()
    tmp_path.joinpath("journals", f"{key[:32]}.json").write_text(json.dumps(entries))
    steps = memory(tmp_path, "d1", **facts)
    steps.adopt_journal(facts, "[]")
    for name in ("/a", "/b"):
        steps.remember("file", name, was="absent")
    items = {item.name: item.before for item in steps.list()}
    assert items["/a"] == {"was": "file", "content": "eA==", "mode": 0o644, "uid": 0, "gid": 0, "target": ""}
    assert (items["/b"]["was"], items["/b"]["target"]) == ("link", "/c")
    if facts is STACK:
        assert items["nginx"] == {"is_installed": False}
        assert items["n.service"] == {"active": True, "enabled": False}
    else:
        assert set(items) == {"/a", "/b"}, "the record has items of other deployments as well"
