"""Of what a service tells of a log, the part that is new."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from client.story import END, Say, Story
from stoker_client.results import unseen


def chunk(offset: int | None, data: str, stream: str = "stdout", **more):
    size = None if offset is None else len(data.encode())
    return {"seq": 1, "stream": stream, "data": data, "offset": offset, "size": size, **more}


def told(*chunks) -> list[tuple[str, int]]:
    return [(part["data"], missing) for part, missing in unseen(chunks)]


@pytest.mark.parametrize(
    ("second", "text", "missing"),
    [
        (chunk(4, "new"), "new", 0),
        (chunk(9, "new"), "new", 5),
        (chunk(0, "head"), "", 0),
        (chunk(1, "ea"), "", 0),
        (chunk(2, "ad, new"), ", new", 0),
        (chunk(None, "head"), "head", 0),
        (chunk(0, "head", "stderr"), "head", 0),
        (chunk(0, "head", config_id="another run"), "head", 0),
        (chunk(0, "head", server_id="another server"), "head", 0),
    ],
)
def test_only_new_text_follows_a_printed_head(second, text, missing):
    assert told(chunk(0, "head"), second) == [("head", 0), (text, missing)]


def test_bytes_are_counted_and_characters_stay_whole():
    assert told(chunk(0, "äö"), chunk(2, "öü"), chunk(5, "üé")) == [("äö", 0), ("ü", 0), ("é", 0)]
    # Invalid bytes are each one byte in the size, and three as the character that stands for them.
    broken = {**chunk(0, "\ufffd\ufffd"), "size": 2}
    assert told(broken, broken) == [("\ufffd\ufffd", 0), ("", 0)]


@pytest.mark.slow
def test_openstacks_watch_prints_a_tail_once(site, spawn, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    deployed = site.deploy(agent := site.add_agent("web1"))["id"]
    agent.finish(agent.entries()[0]["id"])
    Story(
        site,
        f"deployment:{deployed}",
        Say("log", chunk(0, "head"), 1),
        Say("log", chunk(104, "seen"), 2),
        Say("log", chunk(98, "before"), 3),
        Say("log", chunk(104, "seen, new\n"), 4),
        END,
    )
    openstack = str(Path(sys.executable).with_name("openstack"))
    process = spawn(openstack, "software", "deployment", "watch", deployed)

    assert process.communicate(timeout=60) == (
        "headseen, new\n",
        "stoker: 100 bytes of the stdout were not kept here\n",
    )
    assert process.returncode == 0
