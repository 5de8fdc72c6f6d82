"""What is asked of the database does not grow with what is shown: a stack of fifty costs what a stack of five does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from support.in_process import Inside
from support.templates import define, deployment, template

pytestmark = pytest.mark.filterwarnings("ignore")


class Counted(Inside):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.base = f"/v1/{self.project}"

    def get(self, path: str) -> int:
        """How many statements an answer costs."""

        def ask() -> None:
            answer = self.client.get(self.base + path, headers=self.headers)
            assert answer.status_code == 200, answer.text

        ask()  # what is remembered is remembered now
        return self.counted(ask)

    def stack(self, name: str, size: int) -> str:
        resources: dict[str, object] = {
            "config": define("OS::Heat::SoftwareConfig", group="script", config="x", outputs=[{"name": "result"}]),
            "server": define("OS::Heat::DeployedServer", name=name),
            "group": define("OS::Heat::ResourceGroup", count=size, resource_def={"type": "OS::Heat::RandomString"}),
        }
        for i in range(size):
            resources[f"run{i}"] = deployment(signal_transport="NO_SIGNAL")
        reads = [["run", "result"], ["group", "refs"], ["group", "value"]]
        outputs = {
            f"o{i}": {"value": {"get_attr": [name.replace("run", f"run{i}"), attribute]}}
            for i in range(size)
            for name, attribute in reads[:1]
        }
        outputs |= {attribute: {"value": {"get_attr": [name, attribute]}} for name, attribute in reads[1:]}
        template = {"heat_template_version": "2018-08-31", "resources": resources, "outputs": outputs}
        body = {"stack_name": name, "template": template}
        made = self.client.post(f"{self.base}/stacks", json=body, headers=self.headers)
        assert made.status_code == 201, made.text
        return f"/stacks/{name}/{made.json()['stack']['id']}"


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> Iterator[tuple[Counted, str, str]]:
    program = Counted(tmp_path_factory.mktemp("counted"))
    small, large = program.stack("small", 3), program.stack("large", 30)
    yield program, small, large
    program.close()


@pytest.mark.parametrize(
    "below",
    [
        "",
        "/resources",
        "/resources?nested_depth=2",
        "/resources?with_detail=true",
        "/resources/run0",
        "/resources/server/metadata",
        "/events",
        "/events?nested_depth=2",
        "/template",
        "/environment",
        "/outputs",
        "/export",
        "/snapshots",
    ],
)
def test_statements_for_a_stack_do_not_grow(counted, below):
    program, small, large = counted
    assert program.get(large + below) == program.get(small + below)


def test_the_view_of_one_resource_reads_no_other(counted, monkeypatch):
    program, small, _ = counted
    names = ["a%b", "a_b", "aXb", 'a"b', "a\\b"]
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {
            **{name: {"type": "OS::Heat::None"} for name in names},
            **{f"on {name}": {"type": "OS::Heat::None", "depends_on": name} for name in names},
            "nested": {"type": "inner.yaml", "depends_on": names},
        },
    }
    body = {"stack_name": "one", "template": template, "files": {"inner.yaml": "heat_template_version: 2018-08-31"}}
    stack = program.client.post(f"{program.base}/stacks", json=body, headers=program.headers).json()["stack"]["id"]

    def get(stack, below):
        return program.client.get(f"{program.base}{stack}/resources{below}", headers=program.headers).json()

    listed = {
        (path, resource["resource_name"]): resource
        for path in (small, f"/stacks/one/{stack}")
        for resource in get(path, "?with_detail=true")["resources"]
    }
    monkeypatch.delattr("stoker.store.resources.of_stack")
    for (path, name), resource in listed.items():
        assert get(path, f"/{quote(name)}")["resource"] == resource
        if name == "a_b":
            assert resource["required_by"] == ["nested", "on a_b"]
        elif name == "nested":
            assert [link["rel"] for link in resource["links"]] == ["self", "stack", "nested"]


@pytest.mark.parametrize("path", ["/stacks", "/stacks?show_nested=true", "/software_configs", "/software_deployments"])
def test_statements_for_a_project_do_not_grow(counted, path):
    program, _, _ = counted
    # A deployment may be large: the first few tell how many make a page.
    assert program.get(path) <= (4 if path == "/software_deployments" else 3)


CHILD = """
heat_template_version: 2018-08-31
resources:
  config: {type: OS::Heat::SoftwareConfig, properties: {outputs: [{name: said}]}}
  server: {type: OS::Heat::DeployedServer}
  run:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: config}, server: {get_resource: server}, signal_transport: NO_SIGNAL}
outputs:
  said: {value: {get_attr: [run, said]}}
  code: {value: {get_attr: [run, deploy_status_code]}}
"""


@pytest.fixture(scope="module")
def nesting(tmp_path_factory) -> Iterator[tuple[Counted, str, str]]:
    """A stack with a few stacks in it, and one with many."""
    program = Counted(tmp_path_factory.mktemp("nesting"))

    def stack(name: str, size: int) -> str:
        said = template(
            {f"r{i}": {"type": "child.yaml"} for i in range(size)},
            outputs={f"o{i}": {"value": {"get_attr": [f"r{i}", "said"]}} for i in range(size)},
        )
        body = {"stack_name": name, "template": said, "files": {"child.yaml": CHILD}}
        made = program.client.post(f"{program.base}/stacks", json=body, headers=program.headers)
        assert made.status_code == 201, made.text
        return f"/stacks/{name}/{made.json()['stack']['id']}"

    yield program, stack("few", 5), stack("many", 40)
    program.close()


@pytest.mark.parametrize(
    "below",
    [
        *("", "/resources", "/resources?nested_depth=2", "/resources?with_detail=true", "/events?nested_depth=2"),
        *("/resources?nested_depth=2&with_detail=true", "/export", "/outputs", "/outputs/o0", "/resources/r0"),
    ],
)
def test_statements_for_nested_stacks_do_not_grow(nesting, below):
    program, few, many = nesting
    assert program.get(many + below) == program.get(few + below)


def test_statements_for_many_servers_do_not_grow(tmp_path):
    program = Counted(tmp_path)
    costs = []
    for size in (2, 20):
        said = {f"s{i}": {"type": "OS::Heat::DeployedServer"} for i in range(size)}
        body = {"stack_name": f"of{size}", "template": template(said)}
        made = program.client.post(f"{program.base}/stacks", json=body, headers=program.headers).json()["stack"]["id"]
        costs.append(program.get(f"/stacks/of{size}/{made}/resources?with_detail=true"))
    assert costs[0] == costs[1]
    program.close()


def test_a_deployment_on_an_unknown_server_costs_what_one_on_a_known_server_does(counted):
    """Heat's clients name servers of Nova, which Stoker does not know."""
    program = counted[0]
    config = program.call("POST", "software_configs", {"group": "script"})["software_config"]["id"]
    known = program.call("POST", "servers", {"name": "known"})["server"]["id"]

    def create(server: str) -> int:
        body = {"config_id": config, "server_id": server, "status": "COMPLETE"}
        return program.counted(lambda: program.call("POST", "software_deployments", body))

    create(known)
    assert create("a server of Nova") == create(known)
