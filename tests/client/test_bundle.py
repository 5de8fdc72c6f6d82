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
    monkeypatch.chdir(tmp_path)

    def put(**texts: str) -> None:
        for name, text in texts.items():
            path = tmp_path / name.replace("__", "/").replace("_yaml", ".yaml").replace("_sh", ".sh")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return put


def nested(*names: str) -> str:
    lines = [f"  r{i}: {{type: {name}}}" for i, name in enumerate(names)]
    return "\n".join(["heat_template_version: 2021-04-16", "resources:", *lines]) + "\n"


def with_file(name: str) -> str:
    return f"heat_template_version: 2021-04-16\noutputs: {{o: {{value: {{get_file: {name}}}}}}}\n"


def test_text_is_sent_unchanged(write):
    write(web_yaml=MAIN, scripts__go_sh="#!/bin/sh\n")

    bundle = collect("web.yaml")

    assert bundle.template == MAIN
    assert bundle.files == {"scripts/go.sh": "#!/bin/sh\n"}


def test_names_are_relative_to_the_file_that_holds_them(write, tmp_path, monkeypatch):
    write(a__web_yaml=nested("sub/part.yaml"), a__sub__part_yaml=with_file("part.sh"), a__sub__part_sh="echo")
    monkeypatch.chdir("/")

    bundle = collect(str(tmp_path / "a" / "web.yaml"))

    assert bundle.files == {"sub/part.yaml": with_file("part.sh"), "part.sh": "echo"}


def test_the_templates_of_nested_stacks_of_cloudformation_are_sent(write, tmp_path):
    def outer(**words):
        type_, properties = words["names"]
        resource = {type_: "AWS::CloudFormation::Stack", properties: {"TemplateURL": "inner.yaml"}}
        return json.dumps({words["version"]: "2012-12-12", words["resources"]: {"r": resource}})

    hot = outer(version="heat_template_version", resources="resources", names=("type", "properties"))
    cfn = outer(version="AWSTemplateFormatVersion", resources="Resources", names=("Type", "Properties"))
    write(a__hot_yaml=hot, a__inner_yaml=cfn.replace("inner.yaml", "leaf.sh"), a__leaf_sh="leaf")
    write(main_yaml=nested("a/hot.yaml", "b/hot.yaml"), b__hot_yaml=cfn, b__inner_yaml="other")

    assert set(collect("a/hot.yaml").files) == {"inner.yaml", "leaf.sh"}
    base = tmp_path.as_uri()
    files = collect("main.yaml").files  # the names are ambiguous
    for name, texts in ((f"{base}/a/inner.yaml", "leaf.sh"), (f"{base}/b/inner.yaml", "other")):
        assert texts in files[name]
        assert name in files[f"{name.rpartition('/')[0]}/hot.yaml"]


def test_equal_files_may_share_a_name(write):
    write(
        web_yaml=nested("a/part.yaml", "b/part.yaml"),
        a__part_yaml=with_file("x.sh"), b__part_yaml=with_file("x.sh"), a__x_sh="same", b__x_sh="same",
    )  # fmt: skip

    assert collect("web.yaml").files["x.sh"] == "same"


def test_different_files_of_one_name_get_urls(write, tmp_path):
    write(
        web_yaml=nested("a/part.yaml", "b/part.yaml"),
        a__part_yaml=with_file("x.sh"), b__part_yaml=with_file("x.sh"), a__x_sh="one", b__x_sh="two",
    )  # fmt: skip

    bundle = collect("web.yaml")

    base = tmp_path.as_uri()
    assert isinstance(bundle.template, dict)
    assert [r["type"] for r in bundle.template["resources"].values()] == [f"{base}/a/part.yaml", f"{base}/b/part.yaml"]
    assert bundle.files[f"{base}/a/x.sh"] == "one"
    part = json.loads(bundle.files[f"{base}/b/part.yaml"])
    assert bundle.files[part["outputs"]["o"]["value"]["get_file"]] == "two"
    assert part["heat_template_version"] == "2021-04-16"


def test_environments_are_sent_as_text_and_merged(write):
    one = "parameters: {a: 1, b: 1}\nresource_registry: {My::Type: part.yaml, Other: OS::Heat::None}\n"
    two = "parameters: {b: 2}\nresource_registry:\n"
    write(web_yaml=nested(), envs__one_yaml=one, envs__part_yaml=nested(), two_yaml=two)

    bundle = collect("web.yaml", ["envs/one.yaml", "two.yaml"])

    assert bundle.environment_files == ["envs/one.yaml", "two.yaml"]
    assert bundle.files == {"envs/one.yaml": one, "two.yaml": two, "part.yaml": nested()}
    assert bundle.environment == {
        "parameters": {"a": 1, "b": 2},
        "resource_registry": {"My::Type": "part.yaml", "Other": "OS::Heat::None"},
    }


def test_conflicting_environments_get_urls(write, tmp_path):
    registry = "resource_registry: {My::Type: part.yaml}\n"
    write(web_yaml=nested("a/part.yaml"), a__env_yaml=registry, a__part_yaml=nested("x.yaml"), a__x_yaml=nested())
    write(b__env_yaml=registry, b__part_yaml=nested())

    bundle = collect("web.yaml", ["a/env.yaml", "b/env.yaml"])

    base = tmp_path.as_uri()
    assert bundle.environment_files == [f"{base}/a/env.yaml", f"{base}/b/env.yaml"]
    assert bundle.environment["resource_registry"] == {"My::Type": f"{base}/b/part.yaml"}
    assert set(bundle.environment_files) < set(bundle.files)
    assert json.loads(bundle.files[f"{base}/a/env.yaml"])["resource_registry"]["My::Type"] == f"{base}/a/part.yaml"


def test_a_resource_registry_may_have_base_urls_resources_and_hooks(write):
    environment = """\
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
    write(env_yaml=environment, lib__part_yaml="p", lib__other_yaml="o", lib__deep__other2_yaml="2")

    files = collect(None, ["env.yaml"]).files

    assert files == {"env.yaml": environment, "part.yaml": "p", "other.yaml": "o", "other2.yaml": "2"}


def test_a_script_that_resembles_a_broken_template_is_sent(write):
    write(web_yaml=MAIN, scripts__go_sh="heat_template_version: [\n")

    assert collect("web.yaml").files == {"scripts/go.sh": "heat_template_version: [\n"}


def test_a_template_may_refer_to_itself(write):
    write(web_yaml=nested("part.yaml"), part_yaml=nested("web.yaml"))

    assert set(collect("web.yaml").files) == {"web.yaml", "part.yaml"}


def test_binary_files_are_sent_in_base64(write, tmp_path):
    write(web_yaml=with_file("blob"))
    (tmp_path / "blob").write_bytes(b"\xff\x00")

    assert base64.b64decode(collect("web.yaml").files["blob"]) == b"\xff\x00"


@pytest.mark.parametrize("name", ["with space.sh", "100%.sh", "a#b.sh", "é?.sh", "..odd"])
def test_any_file_name_is_accepted(write, tmp_path, name):
    write(web_yaml=with_file(json.dumps(name)))
    (tmp_path / name).write_text("found")

    assert collect("web.yaml").files == {name: "found"}


def test_the_error_of_a_missing_file_names_the_referring_file(write):
    write(web_yaml=nested("part.yaml"), part_yaml=with_file("gone.sh"))

    with pytest.raises(BadInput, match=r"cannot read .*/gone\.sh \(named by part\.yaml\): No such file or directory"):
        collect("web.yaml")


def test_a_directory_is_refused_as_a_file(write):
    write(web_yaml=with_file("."))

    with pytest.raises(BadInput, match="Is a directory"):
        collect("web.yaml")


def test_the_error_of_broken_yaml_names_file_and_line(write):
    write(web_yaml="heat_template_version: 2021-04-16\nresources:\n  a: b: c\n")

    with pytest.raises(BadInput, match=r"web\.yaml:3:7: mapping values are not allowed"):
        collect("web.yaml")


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
    ],
)
def test_deeply_nested_text_is_refused(write, text, complaint):
    write(web_yaml=text)

    with pytest.raises(BadInput, match=complaint):
        collect("web.yaml")
    with pytest.raises(BadInput, match=complaint):
        collect(None, ["web.yaml"])


@pytest.mark.parametrize("text", ["[]", "words", "3"])
def test_an_environment_that_is_no_map_is_refused(write, text):
    write(env_yaml=text)

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


def test_templates_are_read_from_urls(write, web):
    write(a__web_yaml=nested("sub/part.yaml"), a__sub__part_yaml=with_file("part.sh"), a__sub__part_sh="echo")

    bundle = collect(f"{web}/a/web.yaml")

    assert set(bundle.files) == {"sub/part.yaml", "part.sh"}


def test_a_missing_url_is_an_error(web):
    with pytest.raises(BadInput, match=r"cannot fetch .*/nope\.yaml \(named by --template\): Not Found"):
        collect(f"{web}/nope.yaml")


def test_a_remote_template_cannot_read_local_files(write, web, tmp_path):
    write(secret="s")
    write(web_yaml=with_file(f"{tmp_path.as_uri()}/secret"))

    with pytest.raises(BadInput, match="a file of this machine: refused"):
        collect(f"{web}/web.yaml")


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
trees = st.recursive(
    scalars | st.fixed_dictionaries({"get_file": st.text(min_size=1, max_size=5)}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "type", "b"]), inner, max_size=3),
    max_leaves=20,
)


@given(trees)
def test_a_template_without_files_stays_equal(tree):
    assert in_template(tree, "", lambda name, _: name) == tree


@given(trees)
def test_replaced_file_names_are_found_again(tree):
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


def test_an_empty_section_overrides_nothing():
    assert merge({"parameters": {"a": 1}, "x": 2}, {"parameters": None, "x": None}) == {
        "parameters": {"a": 1},
        "x": None,
    }


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
