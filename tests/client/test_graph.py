"""The graph of a stack: what is in which frame, and which arrows there are."""

import re

from stoker_client.graph_renderer import dot


def node(name: str, kind: str, status: str = "CREATE_COMPLETE", *, id: str | None = None, on: str | None = None):
    return {
        "id": name, "resource_name": name, "resource_type": f"OS::Heat::{kind}", "resource_status": status,
        "resource_status_reason": "", "physical_resource_id": id, "nested_stack_id": None,
        "server_id": on, "server_name": on and "web1", "start_time": "2031-05-06T02:29:00Z",
        "end_time": "2031-05-06T02:30:00Z",
    }  # fmt: skip


NODES = [
    node("server", "DeployedServer", id="s1", on="s1"),
    node("script", "SoftwareConfig", id="c1"),
    node("shared", "SoftwareConfig", id="c2"),
    node("made", "SoftwareConfig"),
    node("one", "SoftwareDeployment", "CREATE_FAILED", id="d1", on="s1"),
    node("two", "SoftwareDeployment", "INIT_COMPLETE", on="s1"),
    node("far", "SoftwareDeployment", "INIT_COMPLETE"),
]
EDGES = (
    *(("server", "one"), ("server", "two"), ("script", "one"), ("shared", "two"), ("shared", "far")),
    *(("made", "far"), ("one", "two"), ("one", "made")),
)
STACK = {"nodes": NODES, "edges": [{"source": source, "target": target} for source, target in EDGES]}


def frames(text: str) -> dict[str, set[str]]:
    found = re.findall(r'subgraph cluster_\d+ \{ label="(.*?)";\n(.*?)\n  \}', text, re.DOTALL)
    return {name: set(re.findall(r'^    "(\w+)"', body, re.MULTILINE)) for name, body in found}


def arrows(text: str) -> set[tuple[str, str]]:
    return set(re.findall(r'"(\w+)" -> "(\w+)";', text))


def test_frames_boxes_and_arrows():
    text = dot(STACK)

    assert frames(text) == {"web1": {"server", "one", "two"}}
    assert text.count("SoftwareDeployment: script<") == 1
    assert text.count("SoftwareDeployment: shared<") == 2
    assert '"script" [' not in text
    assert '"made" [' in text, "a config that requires a deployment has its own box"
    # A later deployment of a frame has no arrow from the server.
    assert arrows(text) == {("server", "one"), ("one", "two"), ("one", "made"), ("made", "far")}
    assert "✗ failed 02:30:00" in text
    assert "○ waiting<" in text


def test_a_server_without_deployments_has_no_frame_and_names_are_quoted():
    nodes = [node("server", "DeployedServer", id="s1", on="s1"), node('a"<b', "Value")]
    text = dot({"nodes": nodes, "edges": []})

    assert frames(text) == {}
    assert r'"a\"<b" [label=<<b>a&quot;&lt;b</b>' in text


def test_without_graphviz_the_command_names_it(stoker, site, monkeypatch):
    site.create_stack("web")
    monkeypatch.setenv("PATH", "")

    result = stoker("stack", "graph", "web")

    assert result.code == 1
    assert "Graphviz is not installed" in result.err
    assert stoker("stack", "graph", "web", "--format", "dot").out.startswith("digraph stack {")
    assert stoker("stack", "graph", "web", "--format", "json", "--nested-depth", "1").data == {
        "nodes": [],
        "edges": [],
    }
