"""Much output: on the disk within bounds, at the server head and tail."""

from __future__ import annotations

import pytest

from stoker_agent.output_files import AFTERWARDS, LEAST, BoundedFile, punch, tidy

pytestmark = pytest.mark.slow

MB = 1024 * 1024


@pytest.fixture
def holes(tmp_path):
    """A folder where the middle of a file can be given back."""
    path = tmp_path / "probe"
    path.write_bytes(b"x" * MB)
    if punch(path, MB, 4096) is None:
        pytest.skip("this file system keeps files whole")
    path.unlink()
    return tmp_path


def on_disk(path):
    return path.stat().st_blocks * 512


def test_the_middle_of_a_growing_file_is_released(holes):
    path = holes / "stdout"
    kept = BoundedFile(path, 2 * MB)
    with path.open("wb") as file:
        for number in range(64):
            file.write(bytes([number]) * MB)
            file.flush()
            kept.trim()
            assert on_disk(path) <= 16 * MB  # some of it room that the file system has set aside
    assert path.stat().st_size == 64 * MB
    assert kept.read(0, 10) == (0, bytes(10))
    assert kept.read(63 * MB, 2 * MB) == (63 * MB, bytes([63]) * MB)
    start, data = kept.read(MB, MB)
    assert start > 60 * MB  # it goes on where there is something
    assert 0 not in data
    assert kept.read(MB - 5, 100) == (MB - 5, bytes(5))


def test_short_and_empty_output_stays_complete(holes):
    path = holes / "stdout"
    kept = BoundedFile(path, 0)
    kept.trim()
    assert kept.size() == 0
    path.write_bytes(b"x" * 2 * LEAST)
    kept.trim()
    assert path.read_bytes() == b"x" * 2 * LEAST


def test_an_acknowledged_run_keeps_little_output(holes):
    for name in ("stdout", "answer"):
        holes.joinpath(name).write_bytes(b"x" * 8 * MB)
    tidy(holes)
    for name in ("stdout", "answer"):
        assert on_disk(holes / name) <= 3 * AFTERWARDS
        assert holes.joinpath(name).read_bytes()[:AFTERWARDS] == b"x" * AFTERWARDS


#: Lines of 64 bytes with their numbers.
LINES = "import sys\nfor n in range({}): sys.stdout.write('%063d\\n' % n)"


def line(n):
    return b"%063d\n" % n


def test_long_output_is_reported_as_head_and_tail_with_the_size_of_the_gap(server, agent, holes):
    server.head["max_log_bytes"] = 2 * MB
    count = 800_000  # 51 MB
    script = "#!/usr/bin/env python3\n" + LINES.format(count) + "\nsys.stdout.flush(); import os, time\n"
    agent.begin(server.entry("c1", script + "while not os.path.exists(os.environ['WORK'] + '/go'): time.sleep(0.02)\n"))
    path = agent.run_folder("c1") / "stdout"
    server.until(lambda: path.exists() and path.stat().st_size == count * 64 and on_disk(path) < 13 * MB)
    agent.release()
    values = server.result("c1")
    found = server.logs["c1", "stdout"]
    assert len(found) == count * 64
    assert found[:MB] == b"".join(line(n) for n in range(MB // 64))
    # The end was sent as it was when the run ended, or before.
    assert found.endswith(b"".join(line(n) for n in range(count - 2000, count)))
    for at in range(0, len(found), 64):
        assert found[at : at + 64] == line(at // 64) or b"*" in found[at : at + 64]
    assert b"\0" not in found
    assert values["deploy_stdout"].encode().startswith(line(0))
    assert values["deploy_stdout"].encode().endswith(line(count - 1))
    assert "bytes were cut here" in values["deploy_stdout"]
    sent = sum(1 for id, stream, _ in server.log_calls)
    assert sent < 100  # of 200 that all of it would take


def test_invalid_json_of_a_hook_is_output(server, agent, holes):
    agent.hook("flood", "#!/bin/sh\nhead -c 40000000 /dev/zero | tr '\\0' x; echo end")
    agent.begin(server.entry("c1", "", group="flood"))
    values = server.result("c1")
    assert values["deploy_status_code"] == 0
    assert values["deploy_stdout"].startswith("xxx") and values["deploy_stdout"].endswith("end\n")


def test_a_daemon_that_keeps_writing_does_not_delay_the_result(server, agent):
    agent.begin(server.entry("c1", "setsid sh -c 'while sleep 0.05; do echo on; done' & echo begun"))
    assert server.result("c1")["deploy_stdout"].startswith("begun\n")
    path = agent.run_folder("c1") / "stdout"
    size = path.stat().st_size
    agent.end()
    server.until(lambda: path.stat().st_size > size + 10)
