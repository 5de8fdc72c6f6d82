"""What is seen of a run while it goes on."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.conftest import HOLD, shortened
from stoker_agent.live import parse

pytestmark = pytest.mark.slow

#: An agent whose reports wait less for a server that takes no output.
IMPATIENT = shortened({"live._LAST_SECONDS": 0.5})


def running(server, agent, script, **how):
    agent.begin(server.entry("c1", script), **how)


def test_output_arrives_in_order_while_the_run_lasts(server, agent):
    script = f"echo one; echo err >&2; {HOLD}; printf 'two grü\\303'; printf '\\234e\\n'; {HOLD.replace('/go', '/end')}"
    running(server, agent, script)
    server.until(
        lambda: server.logs.get(("c1", "stdout")) == b"one\n" and server.logs.get(("c1", "stderr")) == b"err\n"
    )
    assert server.signals == []
    agent.release()
    server.until(lambda: server.logs.get(("c1", "stdout")) == "one\ntwo grüÜe\n".encode())
    agent.work.joinpath("end").touch()
    server.result("c1")
    assert ("c1", "stdout", 4) in server.log_calls


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("two", b""),  # Stoker takes it from the result
        ("\\377", b"\xff\n"),
        ("\\357\\277\\275", b"\xef\xbf\xbd\n"),
        ("[5 bytes were cut here]", b"[5 bytes were cut here]\n"),
    ],
    ids=["short", "undecodable", "like undecodable", "like a cut"],
)
def test_the_rest_of_output_is_sent_unless_stoker_can_take_it_from_the_result(server, agent, written, sent):
    running(server, agent, f"echo one; {HOLD}; printf '{written}\\n'")
    server.until(lambda: server.logs.get(("c1", "stdout")) == b"one\n")
    agent.release()
    assert server.result("c1")["deploy_stdout"].startswith("one\n")
    server.until(lambda: server.logs.get(("c1", "stdout")) == b"one\n" + sent)


def test_output_is_sent_in_parts_and_a_lost_answer_duplicates_none(server, agent):
    server.lost["logs"] = 3
    running(server, agent, f"seq 1 200000; {HOLD}")
    whole = "".join(f"{n}\n" for n in range(1, 200_001)).encode()
    server.until(lambda: server.logs.get(("c1", "stdout")) == whole)
    agent.release()
    server.result("c1")
    server.until(lambda: server.logs.get(("c1", "stdout")) == whole)
    offsets = [offset for _, stream, offset in server.log_calls if stream == "stdout"]
    assert offsets == sorted(offsets)


def test_progress_is_the_last_line(server, agent):
    script = f"echo '10% loading' >>$STOKER_PROGRESS; {HOLD}; echo 11 >>$STOKER_PROGRESS"
    running(server, agent, f"{script}; printf 'almost there\\nhalf a li' >>$STOKER_PROGRESS")
    server.until(lambda: len(server.progress) == 2)
    agent.release()
    server.result("c1")
    assert server.progress == [
        ("c1", {"state": "RUNNING", "percent": None, "message": None}),
        ("c1", {"state": "RUNNING", "percent": 10, "message": "loading"}),
        ("c1", {"state": "RUNNING", "percent": None, "message": "almost there"}),
    ]


def test_progress_may_be_overwritten_and_invalid_lines_are_ignored(server, agent):
    script = (
        'say() { printf "$1" >$STOKER_PROGRESS; until test -e $WORK/$2; do sleep 0.02; done; }\n'
        "say '10\\n' a; say '20\\n' b; say '\\n' c; say '\\377\\302\\262 x\\n' d; say '99%%\\tnearly\\n' e; echo last"
    )
    running(server, agent, script)
    for count, name in enumerate("abcde", start=2):
        server.until(lambda count=count: len(server.progress) == count)
        agent.work.joinpath(name).touch()
    assert server.result("c1")["deploy_stdout"] == "last\n"
    assert [(said["percent"], said["message"]) for _, said in server.progress[1:]] == [
        (10, None),
        (20, None),
        (None, None),
        (None, "\ufffd² x"),
        (99, "nearly"),
    ]


def _refuse(server):
    server.answers = {"logs": [500, 404, 400] * 10, "progress": [500, 404, 400]}
    return lambda: len(server.answers["logs"]) < 27


def _take_nothing(server):
    server.take_log = lambda id, stream, offset, data: server.log_calls.append((id, stream, offset)) or 0
    return lambda: len(server.log_calls) == 3


def _hang(server):
    server.released["logs"].clear()
    return lambda: server.log_calls


@pytest.mark.parametrize("fault", [_refuse, _take_nothing, _hang])
def test_a_server_that_does_not_take_output_gets_the_result(server, agent, fault):
    has_begun = fault(server)
    running(server, agent, f"echo one; echo 5 >>$STOKER_PROGRESS; {HOLD}", program=IMPATIENT)
    server.until(has_begun)
    agent.release()
    assert server.result("c1")["deploy_stdout"] == "one\n"
    if fault is _hang:
        assert len(server.log_calls) == 1  # none of the calls was given up: the report came before


BEATING = shortened({"live._HEARTBEAT_SECONDS": 0.3})


def test_a_run_without_output_sends_heartbeats(server, agent):
    agent.begin(server.entry("c1", f"echo '5 so far' >$STOKER_PROGRESS; {HOLD}"), program=BEATING)
    server.until(lambda: len(server.progress) == 5)
    assert server.progress[2:] == [("c1", {"beat": True})] * 3
    agent.release()
    server.result("c1")


def test_a_run_with_output_sends_no_heartbeats(server, agent):
    program = shortened({"live._HEARTBEAT_SECONDS": 3.0})  # a busy machine may pause the script
    agent.begin(server.entry("c1", "until test -e $WORK/go; do echo on; sleep 0.05; done"), program=program)
    server.until(lambda: len(server.logs.get(("c1", "stdout"), b"")) > 360)  # after at least 6 seconds
    agent.release()
    server.result("c1")
    assert ("c1", {"beat": True}) not in server.progress


@given(st.text())
@example("100% there")
@example("²")
@example("5" * 5000)
@example("")
def test_any_line_is_parsed_as_progress(line):
    percent, message = parse(line)
    assert percent is None or 0 <= percent <= 100
    assert message is None or (message and message in line)
    assert percent is not None or (message or "") == line.strip()


@given(st.integers(0, 100), st.sampled_from(["", "%"]), st.from_regex(r"[a-z]+( [a-z]+)*", fullmatch=True))
def test_a_progress_line_has_a_percentage_and_a_message(number, sign, message):
    assert parse(f" {number}{sign}  {message}\r") == (number, message)
    assert parse(f"{number}{sign}") == (number, None)
    assert parse(f"{number + 101} {message}") == (None, f"{number + 101} {message}")


def test_a_run_is_not_reported_as_interrupted_while_its_log_is_sent(server, agent):
    server.released["logs"].clear()
    agent.begin(server.entry("c1", "echo once >>$WORK/ran; sleep 0.5; echo done", deploy_on_interrupt="RERUN"))
    server.until(lambda: agent.run_folder("c1").joinpath("result.json").exists())
    agent.kill()
    server.released["logs"].set()
    agent.start()
    assert server.result("c1")["deploy_status_code"] == 0
    assert agent.lines("ran") == ["once"]
