"""Errors name what is wrong, and do not repeat what is hidden."""

from __future__ import annotations

import json
import re

import pytest

from support.templates import define

HIDDEN = "S3CR3T-not-to-be-repeated"


def template(resources, **parameter):
    said = {"type": "string", "hidden": True, **parameter}
    return {"heat_template_version": "2018-08-31", "parameters": {"word": said}, "resources": resources}


def value(kind, value):
    return {"v": define("OS::Heat::Value", type=kind, value=value)}


WORD = {"get_param": "word"}
NESTED = json.dumps(template(value("number", WORD)))
WRONG = {
    "a type": template({"d": define("OS::Heat::Delay", min_wait=WORD)}),
    "an allowed value": template({"h": define("OS::Heat::WaitConditionHandle", signal_transport=WORD)}),
    "an algorithm": template(value("string", {"digest": [WORD, "x"]})),
    "a constraint": template({}, constraints=[{"allowed_values": ["a"]}]),
    "a pattern": template({}, constraints=[{"allowed_pattern": "[a-z]+"}]),
    "a number": template({}, type="number"),
    "within a text": template({"d": define("OS::Heat::Delay", min_wait={"list_join": ["", ["at ", WORD]]})}),
    "inside": template({"n": define("nested.yaml", word=WORD)}),
    "a reference": template({"s": define("OS::Heat::Value", value={"get_file": WORD})}),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("path", ["/stacks", "/stacks/preview"])
def test_errors_repeat_no_secret_value(stoker, member, case, path):
    name = f"refused-{list(WRONG).index(case)}"
    files = {"nested.yaml": NESTED}
    answer = member.heat(
        "POST", path, {"stack_name": name, "template": WRONG[case], "files": files, "parameters": {"word": HIDDEN}}
    )
    assert answer.status in (200, 201, 400), answer.raw
    assert HIDDEN not in answer.raw.decode()
    if answer.status != 201:
        assert case != "a type" or re.search(r"min_wait.*\*{6}", answer.body["error"]["message"])
        return
    stack = f"/stacks/{name}/{answer.body['stack']['id']}"
    stoker.until(lambda: "IN_PROGRESS" not in member.heat("GET", stack).raw.decode())
    shown = member.heat("GET", f"{stack}").raw + member.heat("GET", f"{stack}/events?nested_depth=3").raw
    assert b"CREATE_FAILED" in shown
    assert HIDDEN not in shown.decode()


def test_the_error_of_an_update_repeats_no_secret_value(stoker, member):
    stack = member.create_stack("updated", template({}), parameters={"word": "first-word"})
    stoker.await_stack(stack)
    for verb in ("PUT", "PATCH"):
        changed = {"template": WRONG["a type"], "parameters": {"word": HIDDEN}}
        answer = member.heat(verb, stack, changed)
        assert answer.status == 400
        assert HIDDEN not in answer.raw.decode()


def test_a_secret_input_of_a_template_is_marked(stoker, member, reader):
    """Also of structured configs and components; its default is redacted, and the agent alone is told it."""
    inputs = [{"name": "key", "secret": True, "default": HIDDEN}, {"name": "open", "default": "plain"}]
    kinds = {
        "OS::Heat::SoftwareConfig": {"config": "true"},
        "OS::Heat::StructuredConfig": {"config": {}},
        "OS::Heat::SoftwareComponent": {"configs": [{"actions": ["CREATE"], "config": "true", "tool": "script"}]},
    }
    resources = {kind.rpartition(":")[2]: define(kind, inputs=inputs, **more) for kind, more in kinds.items()}
    for number, name in enumerate(list(resources)):
        deployed = {"config": {"get_resource": name}, "server": f"a-server-{number}", "signal_transport": "NO_SIGNAL"}
        resources[f"run-{name}"] = define("OS::Heat::SoftwareDeployment", **deployed)
    said = {"heat_template_version": "2018-08-31", "resources": resources}
    stack = member.create_stack("inputs", said)
    stoker.await_stack(stack)
    assert HIDDEN not in member.heat("GET", f"{stack}/template").raw.decode()
    for number in range(len(kinds)):
        (shown,) = reader.heat("GET", f"/software_deployments/metadata/a-server-{number}").body["metadata"]
        values = {each["name"]: each["value"] for each in shown["inputs"]}
        assert (values["key"], values["open"]) == ("******", "plain")
