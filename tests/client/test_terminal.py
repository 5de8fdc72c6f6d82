"""What scripts write cannot steer the terminal that it is shown on."""

import io
import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker_client.cli._log_output import LogPrinter
from stoker_client.cli._output import echo, emit_data
from stoker_client.terminal import clean_for, has_controls, strip_controls

ATTACKS = {
    "a title": ("\x1b]0;owned\x07", ""),
    "a title, ended otherwise": ("\x1b]2;owned\x1b\\", ""),
    "the clipboard": ("\x1b]52;c;cm0gLXJm\x07", ""),
    "a cleared screen": ("\x1b[2J\x1b[H", ""),
    "colours": ("\x1b[1;31mred\x1b[0m", "red"),
    "eight bits": ("\x9b2J\x9d0;owned\x9c", ""),
    "a device's string": ('\x1bP$q"p\x1b\\', ""),
    "another set of characters": ("\x1b(0lqk\x1b(B", "lqk"),
    "an unended title": ("\x1b]0;owned", "0;owned"),
    "an escape in an escape": ("\x1b\x1b[31m[31m", "[31m"),
    "writing over": ("failed\rworked", "failed\nworked"),
    "rubbing out": ("failed\b\b\b\b\b\bworked\x7f", "failedworked"),
    "another direction": ("\u202egpj.\u2066exe\u2069\u200f", "gpj.exe"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_control_characters_are_escaped_on_a_terminal(name):
    attack, left = ATTACKS[name]
    assert strip_controls(f"before{attack}after") == f"before{left}after"


def test_printable_text_stays_unchanged():
    text = "Grüße, 世界\tthe € and 😀\n\n  indented\r\nand more\n"
    assert strip_controls(text) == text.replace("\r\n", "\n")


@settings(deadline=None)
@given(st.text())
@example("\x1b\x1b]0;\x9b\x1b[")
def test_no_control_character_remains(text):
    left = strip_controls(text)
    assert not has_controls(left)
    assert strip_controls(left) == left
    # Also where the text comes in pieces: each is harmless by itself, and none of them has a beginning of a sequence.
    half = len(text) // 2
    assert not has_controls(strip_controls(text[:half]) + strip_controls(text[half:]))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_text_for_a_file_stays_unchanged():
    attack = "\x1b[31mred"
    assert clean_for(attack, Terminal()) == "red"
    assert clean_for(attack, Terminal(), raw=True) == attack
    assert clean_for(attack, io.StringIO()) == attack


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_logs_are_escaped_on_a_terminal(monkeypatch, raw, named):
    out, err = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    base = {"config_id": "c", "server_name": "web", "server_id": "s"}
    LogPrinter("table", named=named, raw=raw).all(
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


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
@settings(deadline=None)
@example(value=["0..."])
@example(value="0...")
@given(value=st.text() | st.lists(st.text(), max_size=2) | st.sampled_from([each[0] for each in ATTACKS.values()]))
def test_json_and_yaml_escape_control_characters_and_keep_their_value(form, read, value):
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        emit_data(form, value)
    assert not has_controls(out.getvalue())
    assert read(out.getvalue()) == value
