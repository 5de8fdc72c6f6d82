"""Printing."""

import json

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker_client.cli._output import emit_data, emit_list, emit_one, emit_value, printable

data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
reused = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # capsys is emptied each time


@reused
@given(data)
def test_json_and_yaml_say_the_same(capsys, value):
    capsys.readouterr()
    emit_data("json", value)
    as_json = capsys.readouterr().out
    emit_data("yaml", value)

    assert json.loads(as_json) == value
    assert yaml.safe_load(capsys.readouterr().out) == value


@given(st.text())
def test_nothing_printable_can_steer_a_terminal(text):
    assert all(char.isprintable() or char == "\n" for char in printable(text))


@reused
@given(st.dictionaries(st.sampled_from(["id", "name", "status"]), st.none() | st.text() | st.lists(st.text())))
def test_any_value_fits_a_table(capsys, row):
    emit_list("table", [row, {}], ("id", "name", "status"))
    emit_one("table", row)
    emit_value("table", row)
    capsys.readouterr()


def test_a_pipe_gets_whole_lines(capsys):
    emit_list("table", [{"id": "x" * 5000, "name": "[bold]y[/bold] é"}], ("id", "name"))

    [_, line] = capsys.readouterr().out.splitlines()
    assert line.split(maxsplit=1) == ["x" * 5000, line.split(maxsplit=1)[1]]
    assert "[bold]y[/bold] é" in line


def test_an_object_leaves_out_what_is_absent(capsys):
    emit_one("table", {"a": 1, "c": {"k": ["v"]}}, ("a", "b", "c"))

    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [["a", "1"], ["c", "k:"], ["-", "v"]]


@pytest.mark.parametrize(("form", "lines"), [("json", 2), ("yaml", 4)])
def test_a_stream_can_be_taken_apart(capsys, form, lines):
    for number in range(2):
        emit_data(form, {"n": number}, stream=True)

    out = capsys.readouterr().out
    read = [json.loads(line) for line in out.splitlines()] if form == "json" else list(yaml.safe_load_all(out))
    assert read == [{"n": 0}, {"n": 1}]
    assert len(out.splitlines()) == lines
