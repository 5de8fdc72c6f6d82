"""What is asked of the database does not grow with what is shown: a stack of fifty costs what a stack of five does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from stoker import serve
from stoker.settings import Settings

pytestmark = pytest.mark.filterwarnings("ignore")


class Counted:
    """The whole program in this process, with its statements counted."""

    def __init__(self, folder: Path) -> None:
        settings = Settings(state_dir=folder, public_url="http://testserver")
        self.store = serve.open_store(settings)
        joined = serve.join(settings, self.store)
        password = joined.services.identity.first_start()
        self.statements = 0
        sa.event.listen(self.store.engine, "before_cursor_execute", self._count)
        self.client = TestClient(joined.app)
        user = {"name": "admin", "domain": {"name": "Default"}, "password": password}
        said = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        answer = self.client.post("/identity/v3/auth/tokens", json=said)
        self.headers = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        self.base = f"/v1/{answer.json()['token']['project']['id']}"

    def _count(self, *_: object) -> None:
        self.statements += 1

    def get(self, path: str) -> int:
        """How many statements an answer costs."""
        self.client.get(self.base + path, headers=self.headers)  # what is remembered is remembered now
        before = self.statements
        answer = self.client.get(self.base + path, headers=self.headers)
        assert answer.status_code == 200, answer.text
        return self.statements - before

    def stack(self, name: str, size: int) -> str:
        resources: dict[str, object] = {
            "config": {
                "type": "OS::Heat::SoftwareConfig",
                "properties": {"group": "script", "config": "x", "outputs": [{"name": "result"}]},
            },
            "server": {"type": "OS::Heat::DeployedServer", "properties": {"name": name}},
            "group": {
                "type": "OS::Heat::ResourceGroup",
                "properties": {"count": size, "resource_def": {"type": "OS::Heat::RandomString"}},
            },
        }
        for i in range(size):
            resources[f"run{i}"] = {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {
                    "config": {"get_resource": "config"},
                    "server": {"get_resource": "server"},
                    "signal_transport": "NO_SIGNAL",
                },
            }
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
    program.client.close()
    program.store.close()


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
def test_of_a_stack(counted, below):
    program, small, large = counted
    assert program.get(large + below) == program.get(small + below)


@pytest.mark.parametrize("path", ["/stacks", "/stacks?show_nested=true", "/software_configs", "/software_deployments"])
def test_of_a_project(counted, path):
    program, _, _ = counted
    assert program.get(path) <= 3


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
        said = {
            "heat_template_version": "2018-08-31",
            "resources": {f"r{i}": {"type": "child.yaml"} for i in range(size)},
            "outputs": {f"o{i}": {"value": {"get_attr": [f"r{i}", "said"]}} for i in range(size)},
        }
        body = {"stack_name": name, "template": said, "files": {"child.yaml": CHILD}}
        made = program.client.post(f"{program.base}/stacks", json=body, headers=program.headers)
        assert made.status_code == 201, made.text
        return f"/stacks/{name}/{made.json()['stack']['id']}"

    yield program, stack("few", 5), stack("many", 40)
    program.client.close()
    program.store.close()


@pytest.mark.parametrize(
    "below",
    [
        *("", "/resources", "/resources?nested_depth=2", "/resources?with_detail=true", "/events?nested_depth=2"),
        *("/resources?nested_depth=2&with_detail=true", "/export", "/outputs", "/outputs/o0", "/resources/r0"),
    ],
)
def test_of_stacks_in_a_stack(nesting, below):
    program, few, many = nesting
    assert program.get(many + below) == program.get(few + below)


def test_of_many_servers(tmp_path):
    program = Counted(tmp_path)
    costs = []
    for size in (2, 20):
        said = {f"s{i}": {"type": "OS::Heat::DeployedServer"} for i in range(size)}
        body = {"stack_name": f"of{size}", "template": {"heat_template_version": "2018-08-31", "resources": said}}
        made = program.client.post(f"{program.base}/stacks", json=body, headers=program.headers).json()["stack"]["id"]
        costs.append(program.get(f"/stacks/of{size}/{made}/resources?with_detail=true"))
    assert costs[0] == costs[1]
    program.client.close()
    program.store.close()


def test_of_all_stacks(tmp_path):
    program = Counted(tmp_path)
    costs = []
    for i in range(3):
        program.stack(f"s{i}", 4)
        before = program.statements
        answer = program.client.get("/cfn/v1/?Action=DescribeStacks&ContentType=JSON", headers=program.headers)
        assert len(answer.json()["DescribeStacksResponse"]["DescribeStacksResult"]["Stacks"]) == i + 1
        costs.append(program.statements - before)
    assert costs[0] == costs[1] == costs[2]
    program.client.close()
    program.store.close()
