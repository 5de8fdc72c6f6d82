"""OS::Heat::Stack: stacks of their own, here and at another Heat, which is another Stoker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from support.clouds import write_clouds
from support.server import Served, served
from support.templates import define, template

INNER = """\
heat_template_version: 2018-08-31
parameters:
  word: {type: string}
  fails: {type: boolean, default: false}
resources:
  value: {type: OS::Heat::TestResource, properties: {value: {get_param: word}, fail: {get_param: fails}}}
outputs:
  said: {value: {get_attr: [value, output]}}
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("there")) as running:
        yield running


@pytest.fixture(scope="module")
def here(tmp_path_factory, there) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("here")
    said = there.environment
    auth = {name: said[f"OS_{name.upper()}"] for name in ("auth_url", "username", "password", "project_name")}
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    entry = {"auth": {**auth, **domains}, "region_name": "RegionOne"}
    write_clouds(folder, {"other": entry})
    # The other one calls its region as every Stoker does; what we call it here is ours to say.
    with served(folder, "--remote-heats", "RegionTwo=other") as running:
        yield running


def outer(region: str | None, word: str, **more) -> dict:
    context = {"context": {"region_name": region}} if region else {}
    properties = {"template": INNER, "parameters": {"word": word, **more}, **context}
    outputs = {
        "said": {"value": {"get_attr": ["other", "outputs", "said"]}},
        "name": {"value": {"get_attr": ["other", "stack_name"]}},
    }
    return template({"other": define("OS::Heat::Stack", **properties)}, outputs=outputs)


def statuses(stoker: Served, name: str) -> list[str]:
    return [each["stack_status"] for each in stoker.heat("GET", f"/stacks?name={name}").body["stacks"]]


@pytest.mark.parametrize("region", [None, "RegionTwo"])
def test_the_remote_stack_follows_its_resource(here, there, region) -> None:
    where = there if region else here
    path = here.create_stack(f"outer-{region or 'here'}".lower(), outer(region, "first"))
    here.await_stack(path)
    said = here.outputs(path)
    assert said["said"] == "first"
    assert statuses(where, said["name"]) == ["CREATE_COMPLETE"]
    assert here.heat("PUT", path, {"template": outer(region, "second")}).status == 202
    here.await_stack(path, "UPDATE_COMPLETE")
    assert here.outputs(path)["said"] == "second"
    for action in ("suspend", "resume", "check"):
        assert here.heat("POST", f"{path}/actions", {action: None}).status == 200
        here.await_stack(path, f"{action.upper()}_COMPLETE")
        assert statuses(where, said["name"]) == [f"{action.upper()}_COMPLETE"]
    assert here.heat("PUT", path, {"template": outer(region, "third", fails=True)}).status == 202
    assert "resources.other: UPDATE_FAILED" in here.await_stack(path, "UPDATE_FAILED")["stack_status_reason"]
    assert here.heat("DELETE", path).status == 204
    here.await_stack(path, "DELETE_COMPLETE")
    assert statuses(where, said["name"]) == []


@pytest.mark.parametrize("region", [None, "RegionTwo"])
def test_the_remote_stack_has_the_files_and_the_environment_of_its_template(here, region) -> None:
    inner = template(
        {"inner": {"type": "Own::Word"}, "file": define("word.yaml", word={"get_file": "word"})},
        outputs={name: {"value": {"get_attr": [name, "said"]}} for name in ("inner", "file")},
    )
    context = {"context": {"region_name": region}} if region else {}
    remote = define("OS::Heat::Stack", template={"get_file": "inner.yaml"}, **context)
    outputs = {name: {"value": {"get_attr": ["remote", "outputs", name]}} for name in ("inner", "file")}
    request = {
        "template": template({"remote": remote}, outputs=outputs),
        "files": {"inner.yaml": yaml.safe_dump(inner), "word.yaml": INNER, "word": "from a file"},
        "environment": {
            "resource_registry": {"Own::Word": "word.yaml"},
            "parameter_defaults": {"word": "from the environment"},
        },
    }
    path = here.create_stack(f"files-{region or 'here'}".lower(), **request)
    here.await_stack(path)
    assert here.outputs(path) == {"inner": "from the environment", "file": "from a file"}
    assert here.heat("DELETE", path).status == 204


def test_an_unavailable_remote_heat_is_waited_for(here, there) -> None:
    there.kill9()
    path = here.create_stack("patient", outer("RegionTwo", "late"))
    assert here.stack(path)["stack_status"] == "CREATE_IN_PROGRESS"
    there.restart()
    here.await_stack(path)
    assert here.outputs(path)["said"] == "late"
    assert here.heat("DELETE", path).status == 204


def test_an_error_of_the_remote_heat_fails_the_resource_and_text_without_a_version_is_not_sent_there(here) -> None:
    properties = {
        "context": {"region_name": "RegionTwo"},
        "template": "heat_template_version: 2018-08-31\nresources: {a: {type: No::Such}}\n",
    }
    path = here.create_stack("refused-there", template({"other": define("OS::Heat::Stack", **properties)}))
    reason = here.await_stack(path, "CREATE_FAILED")["stack_status_reason"]
    assert "the other Heat answered 400: The Resource Type (No::Such) could not be found." in reason
    assert here.heat("DELETE", path).status == 204
    said = template({"other": define("OS::Heat::Stack", **{**properties, "template": "resources: {}"})})
    answer = here.heat("POST", "/stacks", {"stack_name": "refused", "template": said})
    assert (answer.status, "Template format version not found" in answer.body["error"]["message"]) == (400, True)
