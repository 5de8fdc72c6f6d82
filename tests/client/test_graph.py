"""The graph of a stack: what is in which frame, and which arrows there are."""

import re

from stoker_client.graph_renderer import dot


def resource(
    name: str, kind: str, status: str = "CREATE_COMPLETE", *, id: str = "", before: tuple[str, ...] = ()
) -> dict:
    return {
        "resource_name": name, "resource_type": f"OS::Heat::{kind}", "resource_status": status,
        "physical_resource_id": id, "updated_time": "2031-05-06T02:30:00Z", "required_by": list(before),
    }  # fmt: skip


STACK = [
    resource("server", "DeployedServer", id="s1", before=("one", "two")),
    resource("script", "SoftwareConfig", id="c1", before=("one",)),
    resource("shared", "SoftwareConfig", id="c2", before=("two", "far")),
    resource("made", "SoftwareConfig", before=("far",)),
    resource("one", "SoftwareDeployment", "CREATE_FAILED", id="d1", before=("two", "made")),
    resource("two", "SoftwareDeployment", "INIT_COMPLETE", before=()),
    resource("far", "SoftwareDeployment", "INIT_COMPLETE"),
]
DEPLOYMENTS = [{"id": "d1", "server_id": "s1", "server_name": "web1"}]


def frames(text: str) -> dict[str, set[str]]:
    found = re.findall(r'subgraph cluster_\d+ \{ label="(.*?)";\n(.*?)\n  \}', text, re.DOTALL)
    return {name: set(re.findall(r'^    "(\w+)"', body, re.MULTILINE)) for name, body in found}


def arrows(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r'"(\w+)" -> "(\w+)";', text))


def test_a_frame_has_a_server_with_its_deployments():
    assert frames(dot(STACK, DEPLOYMENTS)) == {"web1": {"server", "one", "two"}}


def test_configs_are_in_the_boxes_of_their_deployments():
    text = dot(STACK, DEPLOYMENTS)

    assert text.count("SoftwareDeployment: script<") == 1
    assert text.count("SoftwareDeployment: shared<") == 2
    assert '"script" [' not in text
    assert '"made" [' in text  # it requires a deployment


def test_a_later_deployment_of_a_frame_has_no_arrow_from_the_server():
    assert arrows(dot(STACK, DEPLOYMENTS)) == {("server", "one"), ("one", "two"), ("one", "made"), ("made", "far")}


def test_a_box_shows_state_and_time():
    text = dot(STACK, DEPLOYMENTS)

    assert "✗ failed 02:30:00" in text
    assert "○ waiting<" in text


def test_names_are_quoted():
    text = dot([resource('a"<b', "Value")])

    assert r'"a\"<b" [label=<<b>a&quot;&lt;b</b>' in text


def test_without_graphviz_the_command_names_it(stoker, site, monkeypatch):
    site.create_stack("web")
    monkeypatch.setenv("PATH", "")

    result = stoker("stack", "graph", "web")

    assert result.code == 1
    assert "Graphviz is not installed" in result.err
    assert stoker("stack", "graph", "web", "--format", "dot").out.startswith("digraph stack {")
