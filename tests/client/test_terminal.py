"""What scripts write cannot steer the terminal that it is shown on."""

import io
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from stoker_client import cli
from stoker_client.cli._logs import LogPrinter
from stoker_client.cli._output import echo, emit_data, printable
from stoker_client.cli._runs import describe_changes
from stoker_client.terminal import clean_for, has_controls, show_controls
from stoker_client.triggers import TargetLabels

ATTACKS = {
    "a title": ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
    "the clipboard": ("\x1b]52;c;cm0gLXJm\x07", r"\x1b]52;c;cm0gLXJm\x07"),
    "a cleared screen": ("\x1b[2J\x1b[H", r"\x1b[2J\x1b[H"),
    "eight bits": ("\x9b2J\x9d0;owned\x9c", r"\x9b2J\x9d0;owned\x9c"),
    "an unended title": ("\x1b]0;owned", r"\x1b]0;owned"),
    "writing over": ("failed\rworked", "failed\nworked"),
    "rubbing out": ("failed\b\bworked\x7f", r"failed\x08\x08worked\x7f"),
    "another direction": ("\u202egpj.\u2066exe\u2069\u200f", r"\u202egpj.\u2066exe\u2069\u200f"),
    "half a character": ("\ud800", r"\ud800"),
}
#: What a terminal, an editor or a program may take for the end of a line.
LINE_BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


@pytest.mark.parametrize("name", ATTACKS)
def test_control_characters_are_shown_on_a_terminal(name):
    attack, text = ATTACKS[name]
    assert show_controls(f"before{attack}after") == f"before{text}after"


@given(st.text())
@example("\x1b\x1b]0;\x9b\x1b[")
def test_no_control_character_remains(text):
    shown = show_controls(text)
    assert not has_controls(shown)
    assert show_controls(shown) == shown
    assert all(char.isprintable() or char == "\n" for char in printable(text))


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("line_break", LINE_BREAKS)
def test_every_line_has_the_prefix_of_its_server(monkeypatch, line_break, pieces):
    """Also in a pipe: otherwise a server prints lines that seem to be those of another one."""
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    text = f"one{line_break}second | forged{line_break}"
    chunk = {"config_id": "c", "server_name": "first", "server_id": "s", "stream": "stdout"}
    data = [text] if pieces == 1 else list(text)
    LogPrinter("table", name_of=TargetLabels().of).all([{**chunk, "data": part} for part in data])
    assert out.getvalue().split("\n") == ["first | one", "first | second | forged", ""]


def test_an_item_of_a_difference_is_one_line():
    change = {"item": "a\nok: forged", "outcome": "changed\r", "diff": "-a\x0b+b\n"}
    assert describe_changes([change]).split("\n")[0] == r"changed\r: a\nok: forged"
    assert all(line.startswith(" ") for line in describe_changes([change]).split("\n")[1:])


def test_commands_print_with_one_function():
    """It shows control characters. These modules print no texts of others."""
    own = {"_output", "completion", "examples", "main", "version", "__init__", "_session"}
    names = ("click.echo(", "click.secho(", "sys.stdout.write(", " print(")
    assert [
        str(path)
        for path in Path(cli.__file__).parent.rglob("*.py")
        if path.stem not in own and any(name in path.read_text() for name in names)
    ] == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_logs_are_escaped_on_a_terminal(monkeypatch, raw, named):
    out, err = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    base = {"config_id": "c", "server_name": "web", "server_id": "s"}
    LogPrinter("table", name_of=TargetLabels().of if named else None, raw=raw).all(
        [
            {**base, "stream": "stdout", "data": "\x1b]0;x\x07one\ntwo\x9b2J"},
            {**base, "stream": "stderr", "data": "\u202ethree\n"},
        ]
    )
    echo("\x1b[2Jreason", err=True, raw=raw)
    assert has_controls(out.getvalue()) is has_controls(err.getvalue()) is raw
    assert "one" in out.getvalue()
    assert "two" in out.getvalue()
    assert "three" in err.getvalue()
    assert "reason" in err.getvalue()
    assert clean_for("\x1b[31mred", io.StringIO()) == "\x1b[31mred", "text for a file stays unchanged"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from([each[0] for each in ATTACKS.values()]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
@example(value=["0..."])
@example(value="0...")
@given(value=VALUES)
def test_json_and_yaml_escape_control_characters_and_keep_their_value(form, read, value):
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        emit_data(form, value)
    assert not has_controls(out.getvalue())
    assert read(out.getvalue()) == value
