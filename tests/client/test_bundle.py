"""Collecting what a template needs."""

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker_client.errors import BadInput
from stoker_client.templates import documents, locations
from stoker_client.templates.bundle import collect, in_template, merge
from support.http_stub import Asked, Said, answering

MAIN = """\
heat_template_version: 2021-04-16
# a comment that only the text keeps
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      config: {get_file: scripts/go.sh}
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes files below the working directory, by their names."""
    monkeypatch.chdir(tmp_path)

    def write(files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def nested(*names: str) -> str:
    lines = [f"  r{i}: {{type: {name}}}" for i, name in enumerate(names)]
    return "\n".join(["heat_template_version: 2021-04-16", "resources:", *lines]) + "\n"


def with_file(name: str) -> str:
    return f"heat_template_version: 2021-04-16\noutputs: {{o: {{value: {{get_file: {name}}}}}}}\n"


def two_scripts(first: str, second: str) -> dict[str, str]:
    """A template with two nested ones, which name different files ``x.sh``."""
    parts = {f"{folder}/part.yaml": with_file("x.sh") for folder in "ab"}
    return {"web.yaml": nested("a/part.yaml", "b/part.yaml"), **parts, "a/x.sh": first, "b/x.sh": second}


REGISTRY = """\
resource_registry:
  base_url: lib
  My::Type: part.yaml
  Gone: null
  resources:
    web:
      hooks: pre-create
      My::Other: other.yaml
    db:
      base_url: deep
      My::Other: other2.yaml
"""
BROKEN = "heat_template_version: [\n"
PARTS = {"sub/part.yaml": with_file("part.sh"), "part.sh": "echo"}
#: The files, and those that are sent with the template, or without one with the environment ``env.yaml``.
SENT = {
    "text unchanged": ({"web.yaml": MAIN, "scripts/go.sh": "#!/bin/sh\n"}, {"scripts/go.sh": "#!/bin/sh\n"}),
    "names are relative to the file that has them": (
        {"web.yaml": nested("sub/part.yaml"), "sub/part.yaml": with_file("part.sh"), "sub/part.sh": "echo"}, PARTS,
    ),
    "equal files may share a name": (
        two_scripts("same", "same"), {**{f"{each}/part.yaml": with_file("x.sh") for each in "ab"}, "x.sh": "same"},
    ),
    "a script like a broken template": ({"web.yaml": MAIN, "scripts/go.sh": BROKEN}, {"scripts/go.sh": BROKEN}),
    "a template may refer to itself": (
        {"web.yaml": nested("part.yaml"), "part.yaml": nested("web.yaml")},
        {"web.yaml": nested("part.yaml"), "part.yaml": nested("web.yaml")},
    ),
    "binary files in base64": (
        {"web.yaml": with_file("blob"), "blob": b"\xff\x00"}, {"blob": base64.b64encode(b"\xff\x00").decode()},
    ),
    "a registry with base URLs, resources and hooks": (
        {"env.yaml": REGISTRY, "lib/part.yaml": "p", "lib/other.yaml": "o", "lib/deep/other2.yaml": "2"},
        {"env.yaml": REGISTRY, "part.yaml": "p", "other.yaml": "o", "other2.yaml": "2"},
    ),
    **{
        name: ({"web.yaml": with_file(json.dumps(name)), name: "found"}, {name: "found"})
        for name in ("with space.sh", "100%.sh", "a#b.sh", "é?.sh", "..odd")
    },
}  # fmt: skip


@pytest.mark.parametrize(("files", "sent"), SENT.values(), ids=SENT)
def test_the_files_that_a_template_or_an_environment_names_are_sent(write, tmp_path, monkeypatch, files, sent):
    write(files)
    template = "web.yaml" in files
    bundle = collect("web.yaml") if template else collect(None, ["env.yaml"])
    assert (bundle.get("template"), bundle["files"]) == (files.get("web.yaml"), sent)
    monkeypatch.chdir("/")
    if template:
        assert collect(str(tmp_path / "web.yaml"))["files"] == sent


def test_the_templates_of_nested_stacks_of_cloudformation_are_sent(write, tmp_path):
    def outer(**words):
        type_, properties = words["names"]
        resource = {type_: "AWS::CloudFormation::Stack", properties: {"TemplateURL": "inner.yaml"}}
        return json.dumps({words["version"]: "2012-12-12", words["resources"]: {"r": resource}})

    hot = outer(version="heat_template_version", resources="resources", names=("type", "properties"))
    cfn = outer(version="AWSTemplateFormatVersion", resources="Resources", names=("Type", "Properties"))
    write({"a/hot.yaml": hot, "a/inner.yaml": cfn.replace("inner.yaml", "leaf.sh"), "a/leaf.sh": "leaf"})
    write({"main.yaml": nested("a/hot.yaml", "b/hot.yaml"), "b/hot.yaml": cfn, "b/inner.yaml": "other"})

    assert set(collect("a/hot.yaml")["files"]) == {"inner.yaml", "leaf.sh"}
    base = tmp_path.as_uri()
    files = collect("main.yaml")["files"]  # the names are ambiguous
    for name, texts in ((f"{base}/a/inner.yaml", "leaf.sh"), (f"{base}/b/inner.yaml", "other")):
        assert texts in files[name]
        assert name in files[f"{name.rpartition('/')[0]}/hot.yaml"]


def test_different_files_of_one_name_get_urls(write, tmp_path):
    write(two_scripts("one", "two"))

    bundle = collect("web.yaml")

    base = tmp_path.as_uri()
    types = [resource["type"] for resource in bundle["template"]["resources"].values()]
    assert types == [f"{base}/a/part.yaml", f"{base}/b/part.yaml"]
    assert bundle["files"][f"{base}/a/x.sh"] == "one"
    part = json.loads(bundle["files"][f"{base}/b/part.yaml"])
    assert bundle["files"][part["outputs"]["o"]["value"]["get_file"]] == "two"
    assert part["heat_template_version"] == "2021-04-16"


def test_environments_are_sent_as_text_and_merged(write):
    one = "parameters: {a: 1, b: 1}\nresource_registry: {My::Type: part.yaml, Other: OS::Heat::None}\n"
    two = "parameters: {b: 2}\nresource_registry:\n"
    write({"web.yaml": nested(), "envs/one.yaml": one, "envs/part.yaml": nested(), "two.yaml": two})

    bundle = collect("web.yaml", ["envs/one.yaml", "two.yaml"])

    assert bundle["environment_files"] == ["envs/one.yaml", "two.yaml"]
    assert bundle["files"] == {"envs/one.yaml": one, "two.yaml": two, "part.yaml": nested()}
    assert bundle["environment"] == {
        "parameters": {"a": 1, "b": 2},
        "resource_registry": {"My::Type": "part.yaml", "Other": "OS::Heat::None"},
    }


def test_conflicting_environments_get_urls(write, tmp_path):
    registry = "resource_registry: {My::Type: part.yaml}\n"
    write({"web.yaml": nested("a/part.yaml"), "a/env.yaml": registry, "a/part.yaml": nested("x.yaml")})
    write({"a/x.yaml": nested(), "b/env.yaml": registry, "b/part.yaml": nested()})

    bundle = collect("web.yaml", ["a/env.yaml", "b/env.yaml"])

    base = tmp_path.as_uri()
    assert bundle["environment_files"] == [f"{base}/a/env.yaml", f"{base}/b/env.yaml"]
    assert bundle["environment"]["resource_registry"] == {"My::Type": f"{base}/b/part.yaml"}
    assert set(bundle["environment_files"]) < set(bundle["files"])
    assert json.loads(bundle["files"][f"{base}/a/env.yaml"])["resource_registry"]["My::Type"] == f"{base}/a/part.yaml"


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        (BOMB, "repeat it to more than"),
        ("a: &a [*a]", "leads back"),
        ("a: !!python/object:os.system x", "constructor"),
        ("a: \x00", "control characters"),
        ("resources:\n  a: b: c\n", r"x\.yaml:2:7: mapping values are not allowed"),
    ],
)
def test_text_that_cannot_be_used_is_refused(write, text, complaint):
    write({"x.yaml": text})

    with pytest.raises(BadInput, match=complaint):
        collect("x.yaml")
    with pytest.raises(BadInput, match=complaint):
        collect(None, ["x.yaml"])


@pytest.mark.parametrize("text", ["[]", "words", "3"])
def test_an_environment_that_is_no_map_is_refused(write, text):
    write({"env.yaml": text})

    with pytest.raises(BadInput, match="mapping"):
        collect(None, ["env.yaml"])


@pytest.fixture
def web(tmp_path):
    """The files of ``tmp_path`` over HTTP."""

    def answer(asked: Asked) -> Said:
        file = tmp_path / asked.path.removeprefix("/")
        return Said(body=file.read_bytes()) if file.is_file() else Said(404)

    with answering(answer) as server:
        yield server.url


def test_templates_are_read_from_urls_but_name_no_local_files(write, web, tmp_path):
    write({"web.yaml": nested("sub/part.yaml"), "sub/part.yaml": with_file("part.sh"), "sub/part.sh": "echo"})
    write({"local.yaml": with_file(f"{tmp_path.as_uri()}/web.yaml")})

    assert collect(f"{web}/web.yaml")["files"] == PARTS
    with pytest.raises(BadInput, match="a file of this machine: refused"):
        collect(f"{web}/local.yaml")


#: Where the template is, and the complaint about what is missing.
MISSING = [
    ("part.yaml", r"cannot read .*/gone\.sh \(named by part\.yaml\): No such file or directory"),
    ("folder.yaml", "Is a directory"),
    ("{web}/nope.yaml", r"cannot fetch .*/nope\.yaml \(named by --template\): Not Found"),
]


@pytest.mark.parametrize(("name", "complaint"), MISSING)
def test_the_error_of_a_missing_file_names_the_referring_file(write, web, name, complaint):
    write({"web.yaml": nested("part.yaml"), "part.yaml": with_file("gone.sh"), "folder.yaml": with_file(".")})

    with pytest.raises(BadInput, match=complaint):
        collect(name.format(web=web))


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
trees = st.recursive(
    scalars | st.fixed_dictionaries({"get_file": st.text(min_size=1, max_size=5)}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "type", "b"]), inner, max_size=3),
    max_leaves=20,
)


@given(trees)
def test_replaced_file_names_are_found_again_and_nothing_else_changes(tree):
    assert in_template(tree, "", lambda name, _: name) == tree
    first: list[str] = []
    second: list[str] = []

    changed = in_template(tree, "", lambda name, _: first.append(name) or f"<{name}>.yaml")
    in_template(changed, "", lambda name, _: second.append(name) or name)

    assert second == [f"<{name}>.yaml" for name in first]


mappings = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers()),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers(), max_size=3),
    max_leaves=10,
)


@given(mappings, mappings, mappings)
def test_later_environments_win(one, two, three):
    assert merge(one, {}) == one
    assert merge({}, two) == two
    assert merge(one, one) == one
    assert merge(merge(one, two), three).keys() == one.keys() | two.keys() | three.keys()
    assert merge(one, {"a": 1})["a"] == 1
    assert merge({"parameters": one, "x": 2}, {"parameters": None, "x": None}) == {"parameters": one, "x": None}


@given(st.lists(st.text("ab .%#?é", min_size=1, max_size=6), min_size=1, max_size=3))
def test_a_located_file_is_the_same_from_itself(parts):
    name = "/".join(parts)

    url = locations.locate(name, Path("/base/web.yaml").as_uri())

    assert locations.locate(url) == url


@given(st.text(max_size=50))
def test_any_text_is_parsed_or_refused(text):
    try:
        documents.parse(text, "x")
    except BadInput as problem:
        assert str(problem).startswith("x:")
