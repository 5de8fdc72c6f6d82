"""What hooks record for undo: its owner and its order."""

from __future__ import annotations

from stoker_agent.hook_memory import Memory

STACK = {"deploy_stack_id": "s/1", "deploy_resource_name": "r"}


def memory(folder, deployment, **facts):
    entry = {"id": "c", "name": "motd", "deployment_id": deployment, **facts.pop("entry", {})}
    return Memory.of(entry, facts, folder)


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
