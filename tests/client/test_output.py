"""Printing."""

import json
import os
from datetime import UTC, datetime

import click
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stoker_client.cli import _table
from stoker_client.cli._output import Output, emit_data, emit_list, emit_one, emit_value


@given(st.dictionaries(st.sampled_from(["id", "name", "status"]), st.none() | st.text() | st.lists(st.text())))
def test_any_value_fits_a_table(capsys, row):
    emit_list(Output(), [row, {}], ("id", "name", "status"))
    emit_one(Output(), row)
    emit_value(Output(), row)
    capsys.readouterr()


def test_lines_are_not_cut_in_a_pipe_and_absent_fields_are_omitted(capsys):
    emit_list(Output(), [{"id": "x" * 5000, "name": "[bold]y[/bold] é"}], ("id", "name"))
    [_, line] = capsys.readouterr().out.splitlines()
    assert line.split() == ["[bold]y[/bold]", "é", "x" * 5000]

    emit_one(Output(), {"a": 1, "c": {"k": ["v"]}}, ("a", "b", "c"))
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [["a", "1"], ["c", "k:"], ["-", "v"]]


NODES = [{"id": "b" * 36, "name": "node10", "extra": 1}, {"id": "a" * 36, "name": "node2", "extra": None}]


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (Output("name"), ["node2", "node10"]),
        (Output("name", sort="name:desc"), ["node10", "node2"]),
        (Output("name", sort="extra", limit=1), ["node2"]),
        (Output("value", ("name", "extra")), ["node2\t", "node10\t1"]),
        (Output("value", ("Name", "ID"), sort="NAME:desc", limit=1), [f"node10\t{'b' * 36}"]),
        (Output("csv", ("extra", "name")), ["extra,name", ",node2", "1,node10"]),
        (Output("table", ("name",)), ["Name", "node2", "node10"]),
        (Output("wide"), [f"Name     ID{' ' * 37}Extra", f"node2    {'a' * 36}", f"node10   {'b' * 36}   1"]),
        (Output("json", ("name",), limit=1), ["[", "  {", '    "name": "node2"', "  }", "]"]),
    ],
)
def test_a_list_is_printed_in_every_format(capsys, output, lines):
    emit_list(output, NODES, ("id", "name"), wide=("extra",), order="name")

    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (Output("name"), ["node2"]),
        (Output("value", ("id", "name")), ["a" * 36, "node2"]),
        (Output("csv", ("name",)), ["name", "node2"]),
        (Output("yaml", ("name",)), ["name: node2"]),
    ],
)
def test_an_object_is_printed_in_every_format(capsys, output, lines):
    emit_one(output, NODES[1], ("id", "name"))

    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize("output", [Output(columns=("nope",)), Output(sort="nope"), Output(sort="name:up")])
def test_an_unknown_column_is_a_usage_error(output):
    with pytest.raises(click.UsageError):
        emit_list(output, NODES, ("id", "name"))


NAMED = [
    {"id": "a" * 8 + "-1111-1111-1111-111111111111", "name": "web1", "status": "CREATE_COMPLETE", "created_at": "2026"},
    {"id": "a" * 8 + "-1222-1111-1111-111111111111", "name": "db", "status": "CREATE_FAILED", "note": "many " * 30},
]


@pytest.mark.parametrize(
    ("form", "ids"), [("table", ["a" * 8 + "-11", "a" * 8 + "-12"]), ("wide", [row["id"] for row in NAMED])]
)
def test_a_table_on_a_terminal_has_names_first_whole_states_and_ids_that_commands_accept(monkeypatch, form, ids):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")

    shown = shown_on_a_terminal(monkeypatch, lambda: emit_list(Output(form), NAMED, ("id", "name", "status", "note")))

    lines = [line for line in shown.splitlines() if "CREATE_" in line]
    assert [line.split()[:3] for line in lines] == [
        ["web1", ids[0], "CREATE_COMPLETE"],
        ["db", ids[1], "CREATE_FAILED"],
    ]
    assert all(len(line.rstrip()) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize(
    ("moment", "age"), [("2026-11-27T03:27:36Z", "1h ago"), ("2026-11-29T04:30:00Z", "in 2d"), ("never", "never")]
)
def test_times_on_a_terminal_are_ages(moment, age):
    assert _table.shorten("creation_time", [moment], datetime(2026, 11, 27, 4, 30, tzinfo=UTC)) == [age]


@pytest.mark.parametrize("width", [80, 40])
def test_a_narrow_terminal_does_not_break_ids(monkeypatch, width):
    rows = [{"id": "a" * 36, "name": "a name of " + "many " * 20, "server_id": "b" * 36, "status": "COMPLETE"}]
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")

    text = shown_on_a_terminal(monkeypatch, lambda: emit_list(Output("wide"), rows, tuple(rows[0])))

    assert text.count("a" * 36) == text.count("b" * 36) == 1
    assert "\x1b[" in text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown_on_a_terminal(monkeypatch, lambda: emit_list(Output("wide"), rows, tuple(rows[0])))


def test_names_are_folded_less_than_other_text(monkeypatch):
    row = {"name": "web " * 10, "reason": "word " * 20, "note": ""}
    monkeypatch.setenv("COLUMNS", "45")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")

    head = shown_on_a_terminal(monkeypatch, lambda: emit_list(Output(), [row], tuple(row))).splitlines()[0]

    assert (head.index("Reason"), "Note" in head) == (27, False)


_END = "\a"


def shown_on_a_terminal(monkeypatch, emit) -> str:
    """What ``emit`` writes to a real terminal."""
    main, side = os.openpty()
    with os.fdopen(side, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        emit()
        terminal.write(_END)
        terminal.flush()
        text = ""
        while not text.endswith(_END):  # a terminal passes text on in parts
            text += os.read(main, 100_000).decode()
        monkeypatch.undo()
    os.close(main)
    return text.removesuffix(_END)


@pytest.mark.parametrize(("form", "lines"), [("json", 2), ("yaml", 4)])
def test_a_stream_of_objects_can_be_parsed(capsys, form, lines):
    for number in range(2):
        emit_data(form, {"n": number}, stream=True)

    out = capsys.readouterr().out
    read = [json.loads(line) for line in out.splitlines()] if form == "json" else list(yaml.safe_load_all(out))
    assert read == [{"n": 0}, {"n": 1}]
    assert len(out.splitlines()) == lines
