"""What is asked of the database does not grow with what is shown: a large stack costs what a small one does."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from support.in_process import Inside
from support.templates import define, deployment, template

pytestmark = pytest.mark.filterwarnings("ignore")


def cost(program: Inside, path: str) -> int:
    """How many statements an answer costs."""
    program.call("GET", path)  # what is remembered is remembered now
    return program.counted(lambda: program.call("GET", path))


def cost_of_objects(program: Inside, verb: str, path: str = "") -> int:
    """How many statements a call of the object store costs."""
    url = f"/object-store/v1/AUTH_{program.project}{path}"

    def ask() -> None:
        answer = program.request(verb, url, b"data" if verb == "PUT" else b"")
        assert answer.status < 300, answer.raw

    return program.counted(ask)


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


def create(program: Inside, name: str, size: int) -> str:
    """Create a stack with so many runs, servers, members of a group, and stacks in it."""
    config = define("OS::Heat::SoftwareConfig", group="script", config="x", outputs=[{"name": "result"}])
    resources = {
        "config": config,
        "server": define("OS::Heat::DeployedServer", name=name),
        "group": define("OS::Heat::ResourceGroup", count=size, resource_def={"type": "OS::Heat::RandomString"}),
        **{f"run{i}": deployment(signal_transport="NO_SIGNAL") for i in range(size)},
        **{f"server{i}": {"type": "OS::Heat::DeployedServer"} for i in range(size)},
        **{f"nested{i}": {"type": "child.yaml"} for i in range(size)},
    }
    reads = [("group", "refs"), ("group", "value"), *((f"run{i}", "result") for i in range(size))]
    reads += [(f"nested{i}", "said") for i in range(size)]
    outputs = {"-".join(read): {"value": {"get_attr": list(read)}} for read in reads}
    return program.create_stack(name, template(resources, outputs=outputs), files={"child.yaml": CHILD})


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> Iterator[tuple[Inside, str, str]]:
    program = Inside(tmp_path_factory.mktemp("counted"))
    yield program, create(program, "small", 3), create(program, "large", 30)
    program.close()


@pytest.mark.parametrize(
    "below",
    [
        "",
        *("/resources", "/resources?nested_depth=2", "/resources?with_detail=true"),
        *("/resources?nested_depth=2&with_detail=true", "/resources/run0", "/resources/nested0"),
        *("/resources/server/metadata", "/events", "/events?nested_depth=2", "/outputs", "/outputs/nested0-said"),
        *("/template", "/environment", "/export", "/snapshots"),
    ],
)
def test_statements_for_a_stack_do_not_grow(counted, below):
    program, small, large = counted
    assert cost(program, large + below) == cost(program, small + below)


def test_the_view_of_one_resource_reads_no_other(counted, monkeypatch):
    program, small, _ = counted
    names = ["a%b", "a_b", "aXb", 'a"b', "a\\b"]
    said = template(
        {
            **{name: {"type": "OS::Heat::None"} for name in names},
            **{f"on {name}": {"type": "OS::Heat::None", "depends_on": name} for name in names},
            "nested": {"type": "inner.yaml", "depends_on": names},
        }
    )
    one = program.create_stack("one", said, files={"inner.yaml": "heat_template_version: 2018-08-31"})
    listed = {
        (path, resource["resource_name"]): resource
        for path in (small, one)
        for resource in program.call("GET", f"{path}/resources?with_detail=true")["resources"]
    }
    monkeypatch.delattr("stoker.store.resources.of_stack")
    for (path, name), resource in listed.items():
        assert program.call("GET", f"{path}/resources/{quote(name)}")["resource"] == resource
        if name == "a_b":
            assert resource["required_by"] == ["nested", "on a_b"]
        elif name == "nested":
            assert [link["rel"] for link in resource["links"]] == ["self", "stack", "nested"]


@pytest.mark.parametrize("path", ["/stacks", "/stacks?show_nested=true", "/software_configs", "/software_deployments"])
def test_statements_for_a_project_do_not_grow(counted, path):
    program, _, _ = counted
    # A deployment may be large: the first few tell how many make a page.
    assert cost(program, path) <= (4 if path == "/software_deployments" else 3)


def test_a_deployment_on_an_unknown_server_costs_what_one_on_a_known_server_does(counted):
    """Heat's clients name servers of Nova, which Stoker does not know."""
    program = counted[0]
    config = program.create("software_configs", group="script")["id"]
    known = program.create("servers", name="known")["id"]

    def create(server: str) -> int:
        body = {"config_id": config, "server_id": server, "status": "COMPLETE"}
        return program.counted(lambda: program.create("software_deployments", **body))

    create(known)
    assert create("a server of Nova") == create(known)


@pytest.fixture(scope="module")
def containers(counted) -> Inside:
    """The account has a container ``c-3`` and a container ``c-60``, with so many folders and an object ``o``."""
    program, _, _ = counted
    for size in (3, 60):
        for below in ("", *(f"/folder{each}/o{each}" for each in range(size)), "/o"):
            cost_of_objects(program, "PUT", f"/c-{size}{below}")
    return program


@pytest.mark.parametrize(
    ("verb", "below"),
    [
        *(("HEAD", ""), ("GET", ""), ("GET", "?delimiter=/"), ("GET", "?prefix=folder&delimiter=/&format=json")),
        *((verb, "/o") for verb in ("GET", "HEAD", "POST", "PUT", "DELETE")),
    ],
)
def test_statements_for_a_container_do_not_grow(containers, verb, below):
    small, large = (cost_of_objects(containers, verb, f"/c-{size}{below}") for size in (3, 60))
    assert small == large <= 14


@pytest.mark.parametrize("query", ["", "?format=json", "?delimiter=-"])
def test_statements_for_an_account_do_not_grow(containers, query):
    before = cost_of_objects(containers, "GET", query)
    for each in range(5):
        cost_of_objects(containers, "PUT", f"/more{query[1:2]}{each}")
    assert cost_of_objects(containers, "GET", query) == before <= 4
