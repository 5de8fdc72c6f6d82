"""Small requests whose templates stand for much: all values of one share a budget."""

from __future__ import annotations

import json

from support.availability import assert_ends, assert_harmless
from support.templates import define

LARGE = "x" * 3_900_000


def template(resources=None, **sections):
    return {"heat_template_version": "2018-08-31", "resources": resources or {}, **sections}


TOO_LARGE = "all values together would be too large"


def value(said, **more):
    return define("OS::Heat::Value", value=said) | more


def refused(answer):
    """It names a place of the template and the limit."""
    assert answer.status == 400, answer.raw[:300]
    message = answer.body["error"]["message"]
    assert TOO_LARGE in message
    return message


def preview(account, said, **more):
    return account.heat("POST", "/stacks/preview", {"stack_name": "s", "template": said, **more})


def test_a_large_file_used_300_times_is_refused(stoker, reader):
    said = template({f"r{i}": value({"get_file": "f"}) for i in range(300)})

    def attack():
        message = refused(preview(reader, said, files={"f": LARGE}))
        assert message.startswith("resources.r3.properties: all values together would be too large")
        refused(reader.heat("POST", "/validate", {"template": said, "files": {"f": LARGE}}))

    assert_harmless(stoker, attack)


def test_long_texts_built_by_short_calls_are_refused(stoker, reader):
    """A hundred times 3.8 MB of 20 KB."""
    call = {"str_replace": {"template": "w" * 1900, "params": {"w": "y" * 2000}}}
    said = template({f"r{i}": value(call) for i in range(100)})

    def attack():
        refused(preview(reader, said))

    assert_harmless(stoker, attack)


def test_many_repetitions_near_their_limit_are_refused(stoker, reader):
    items = [str(i) for i in range(100)]
    call = {"repeat": {"template": "%a%%b%", "for_each": {"%a%": items, "%b%": items}}}
    said = template({f"r{i}": value(call) for i in range(20)})

    def attack():
        answer = preview(reader, said)
        assert answer.status == 400
        assert "resources.r9.properties: evaluation would take too long" in answer.body["error"]["message"]

    assert_harmless(stoker, attack)


def test_nested_templates_share_the_budget_of_their_parent(stoker, reader):
    inner = json.dumps(template({"r": value({"get_file": "f"})}))
    said = template({f"n{i}": {"type": "n.yaml"} for i in range(100)})

    def attack():
        message = refused(preview(reader, said, files={"n.yaml": inner, "f": LARGE}))
        assert message.startswith("resources.n3<n.yaml>.resources.r.properties: all")

    assert_harmless(stoker, attack)


def test_values_known_at_run_time_count_in_the_budget(stoker, member):
    """Each hands its 3.9 MB on to the next: nothing of that can be seen before the stack is created."""
    resources = {"r0": value({"get_file": "f"})}
    resources |= {f"r{i}": value({"get_attr": [f"r{i - 1}", "value"]}) for i in range(1, 150)}
    outputs = {f"o{i}": {"value": {"get_attr": ["r0", "value"]}} for i in range(100)}
    body = {"template": template(resources, outputs=outputs), "files": {"f": LARGE}, "disable_rollback": True}
    count = iter(range(10))

    def attack():
        name = f"handed-on-{next(count)}"
        made = member.heat("POST", "/stacks", {**body, "stack_name": name})
        assert made.status == 201, made.raw[:300]
        path = f"/stacks/{name}/{made.body['stack']['id']}"
        shown = member.heat("GET", f"{path}?resolve_outputs=false").body["stack"]
        assert shown["stack_status"] == "CREATE_FAILED"
        assert TOO_LARGE in shown["stack_status_reason"]
        outputs = member.heat("GET", path).body["stack"]["outputs"]
        assert len([each for each in outputs if TOO_LARGE in each.get("output_error", "")]) > 90
        assert member.heat("DELETE", path).status == 204

    assert_harmless(stoker, attack)
    assert_ends(stoker)
