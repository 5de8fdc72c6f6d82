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
