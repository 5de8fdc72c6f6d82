"""Small requests whose templates stand for much: all values of one share a budget."""

from __future__ import annotations

import json

import pytest

from support.availability import assert_ends, assert_harmless
from support.templates import define, template

LARGE = "x" * 3_900_000


TOO_LARGE = "all values together would be too large"


def value(said):
    return define("OS::Heat::Value", value=said)


INNER = json.dumps(template({"r": value({"get_file": "f"})}))
TEXT = {"str_replace": {"template": "w" * 1900, "params": {"w": "y" * 2000}}}
ITEMS = [str(number) for number in range(100)]
REPEAT = {"repeat": {"template": "%a%%b%", "for_each": {"%a%": ITEMS, "%b%": ITEMS}}}
ATTACKS = {
    "a large file used 300 times": (
        template({f"r{number}": value({"get_file": "f"}) for number in range(300)}),
        f"resources.r3.properties: {TOO_LARGE}",
        {"f": LARGE},
    ),
    "a hundred times 3.8 MB of 20 KB": (template({f"r{number}": value(TEXT) for number in range(100)}), TOO_LARGE, {}),
    "repetitions near their limit": (
        template({f"r{number}": value(REPEAT) for number in range(20)}),
        "resources.r9.properties: evaluation would take too long",
        {},
    ),
    "nested templates, which share the budget of their parent": (
        template({f"n{number}": {"type": "n.yaml"} for number in range(100)}),
        f"resources.n3<n.yaml>.resources.r.properties: {TOO_LARGE}",
        {"n.yaml": INNER, "f": LARGE},
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_small_request_that_stands_for_much_is_refused(stoker, reader, attack):
    """The error names a place of the template and the limit."""
    said, message, files = ATTACKS[attack]
    body = {"stack_name": "s", "template": said, "files": files}

    def send():
        for path in ("/stacks/preview", "/validate"):
            answer = reader.heat("POST", path, body)
            assert answer.status == 400, answer.raw[:300]
            assert message in answer.body["error"]["message"]

    assert_harmless(stoker, send)


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
