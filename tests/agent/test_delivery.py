"""Each run once, each result reported: whatever ends, goes away or comes twice."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time

import pytest

from agent.conftest import HOLD, shortened

pytestmark = pytest.mark.slow

ONCE = "echo ran >>$WORK/runs"
#: Says that it is there, and does not end by itself.
LASTING = "#!/bin/bash\necho ran >>$WORK/runs\necho begun\necho $$ >$WORK/pid\nsleep 1000\n"


def begun(server, agent):
    """The process of a LASTING script, when it has begun."""
    return int(server.until(lambda: agent.lines("pid"))[0])


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_an_agent_that_ended_in_mid_run_reports_it_as_interrupted(server, agent, sign):
    """SIGTERM leaves the run half a second."""
    agent.begin(server.entry("c1", LASTING), program=shortened({"agent._LAST_RUN_SECONDS": 0.5}))
    left = begun(server, agent)
    agent.end(sign)
    assert left in agent.living()
    assert ("agent.stopped: 1 runs are still in progress" in agent.log) == (sign == signal.SIGTERM)
    agent.start()
    values = server.result("c1")
    assert values["deploy_status_code"] == 137
    assert values["deploy_status_reason"].startswith("Interrupted")
    assert values["deploy_stdout"] == "begun\n"
    assert left not in agent.living()
    agent.run(server.entry("c1", LASTING), server.entry("c2", "echo after"))
    assert agent.lines("runs") == ["ran"]


def test_an_interrupted_run_runs_again_in_an_empty_folder_if_its_config_says_so(server, agent):
    script = "test -e $WORK/second && exit 0; touch $WORK/second\nprintf old >$heat_outputs_path.o\n" + LASTING
    agent.begin(server.entry("c1", script.replace("#!/bin/bash\n", ""), outputs=["o"], deploy_on_interrupt="RERUN"))
    left = begun(server, agent)
    agent.kill()
    agent.start()
    values = server.result("c1")
    assert left not in agent.living()
    assert values.pop("deploy_run_seconds") >= 0
    assert values == {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": 0}


def test_an_agent_killed_before_its_report_arrived_sends_it_after_its_restart(server, agent):
    server.lost["signal"] = 1_000_000
    server.withdraws_reported = False
    agent.run(server.entry("c1", ONCE + "; echo said"))
    server.vanish()
    agent.kill()
    server.lost["signal"] = 0
    server.signals.clear()
    server.come_back()
    agent.start()
    assert server.result("c1")["deploy_stdout"] == "said\n"
    agent.await_acknowledged("c1")
    assert agent.lines("runs") == ["ran"]


def test_a_report_that_fails_does_not_delay_the_next_one(server, agent):
    server.answers["signal"] = [500]
    agent.begin(server.entry("c1", ONCE), server.entry("c2", ONCE))
    server.result("c1")
    server.result("c2")
    assert sorted(id for id, _ in server.signals) == ["c1", "c2"]


def test_reports_arrive_after_an_outage_of_the_server(server, agent):
    agent.begin(*(server.entry(f"c{n}", f"{ONCE}; test {n} != 1 || {HOLD}") for n in range(3)))
    server.until(lambda: len(agent.lines("runs")) == 2)
    # The agent has the answer to its report; otherwise it would send the report again.
    agent.await_acknowledged("c0")
    server.vanish()
    agent.release()
    server.until(lambda: agent.run_folder("c2").joinpath("result.json").exists())
    server.come_back()
    server.result("c1")
    server.result("c2")
    agent.run(server.entry("c3", ONCE))
    assert agent.lines("runs") == ["ran"] * 4
    assert [id for id, _ in server.signals] == ["c0", "c1", "c2", "c3"]


def test_the_order_of_the_document_is_the_order_of_the_runs_and_sigterm_ends_an_idle_agent(server, agent):
    names = ["b", "a", "d", "c", "z", "y"]
    agent.begin(*(server.entry(f"id-{name}", f"echo {name} >>$WORK/order") for name in names))
    server.result("id-y")
    assert agent.lines("order") == names
    assert agent.end(signal.SIGTERM) == 0
    assert agent.living() == []


def test_repeated_and_reordered_documents_run_nothing_twice(server, agent):
    server.withdraws_reported = False
    entries = [server.entry(f"c{n}", ONCE) for n in range(3)]
    agent.begin(*entries, *entries)
    for turn in (entries[::-1], [*entries, *entries]):
        server.until(lambda: len(server.signals) == 3)
        polls = len(server.polls)
        server.give(*turn)
        server.until(lambda polls=polls: len(server.polls) > polls)
    agent.run(*entries, server.entry("last", ONCE))
    assert agent.lines("runs") == ["ran"] * 4
    assert len(server.signals) == 4


def test_a_script_that_deletes_the_record_of_its_run_runs_once(server, agent):
    script = f"{ONCE}; {HOLD}; rm -rf $(dirname $STOKER_RUN_DIR)"
    agent.begin(server.entry("c1", script), server.entry("c2", ONCE))
    server.until(lambda: agent.lines("runs"))
    server.vanish()
    agent.release()
    server.until(lambda: len(agent.lines("runs")) == 2)
    server.come_back()
    assert server.result("c1")["deploy_status_code"] == 0
    assert server.result("c2")["deploy_status_code"] == 0
    assert agent.lines("runs") == ["ran"] * 2


def test_a_result_that_the_agent_does_not_have_any_more_is_reported_as_lost(server, agent):
    """As after a restored backup of its database; ``journeys/test_restored_database`` has results that it has."""
    entry = server.entry("c1", f"{ONCE}; exit 3")
    agent.begin(entry, program=shortened({"results.LOST_SECONDS": 0.5, "agent._UPKEEP_SECONDS": 0.1}))
    agent.await_acknowledged("c1")
    then = time.time() - 90_000
    os.utime(agent.run_folder("c1") / "acknowledged", (then, then))
    server.give(server.entry("c2", "true"))
    server.until(lambda: not agent.run_folder("c1").exists())
    server.give(entry)
    values = server.until(lambda: len(server.results("c1")) == 2 and server.results("c1"))[1]
    assert (values["deploy_status_code"], values["deploy_status_reason"]) == (1, "The result was lost")
    assert agent.lines("runs") == ["ran"]


def test_a_run_withdrawn_before_it_begins_does_not_run(server, agent):
    hold = f"{ONCE}; {HOLD}"
    agent.begin(server.entry("c1", hold), server.entry("c2", "touch $WORK/wrong"))
    server.until(lambda: agent.lines("runs"))
    polls = len(server.polls)
    server.give(server.entry("c1", hold), server.entry("c3", "true"))
    server.until(lambda: len(server.polls) > polls)  # the agent asks for the next one when it has this one
    agent.release()
    server.result("c3")
    assert not agent.work.joinpath("wrong").exists()
    assert server.results("c2") == []


GARBAGE = [
    None,
    5,
    "text",
    ["list"],
    {},
    {"id": None},
    {"id": 5},
    {"id": ["x"]},
    {"id": "../../escape"},
    {"id": ""},
    {"id": "g1", "inputs": 5},
    {"id": "g2", "inputs": [7, {"name": ["x"]}], "group": "script", "config": "true"},
    {"id": "g3", "group": ["x"], "outputs": 3},
    {"id": "g4", "group": "script", "config": "true", "outputs": [5]},
    {"id": "g5", "group": "script", "config": "true", "inputs": [{"value": 1}]},
    {"id": "g6", "group": "script", "config": "true", "name": {"odd": 1}, "options": None},
]


def test_invalid_entries_of_a_document_do_not_stop_the_valid_ones(server, agent):
    agent.run(*GARBAGE, server.entry("c1", ONCE))
    assert {id: values["deploy_status_code"] for id, values in server.signals} == {
        **dict.fromkeys(("g1", "g2", "g3", "g4", "g5"), 1),
        "g6": 0,
        "c1": 0,
    }
    agent.run(server.entry("c2", ONCE))
    assert sorted(each.name for each in agent.run_folder("c1").parent.iterdir()) == [
        "c1", "c2", "g1", "g2", "g3", "g4", "g5", "g6",
    ]  # fmt: skip


def test_an_interrupted_run_with_no_signal_reports_nothing(server, agent):
    unsignalled = server.entry("c1", LASTING, deploy_signal_transport="NO_SIGNAL")
    agent.begin(unsignalled)
    begun(server, agent)
    agent.kill()
    for last in ("c2", "c3"):
        agent.run(unsignalled, server.entry(last, "true"))
        agent.end()
    assert agent.lines("runs") == ["ran"]
    assert [id for id, _ in server.signals] == ["c2", "c3"]


def test_after_sigterm_a_run_that_ends_soon_is_reported(server, agent):
    script = f"echo $$ >$WORK/pid; {HOLD}; echo done"
    agent.begin(server.entry("c1", script), server.entry("c2", ONCE))
    begun(server, agent)
    agent.process.send_signal(signal.SIGTERM)
    agent.release()
    assert agent.process.wait(60) == 0
    assert [values["deploy_stdout"] for values in server.results("c1")] == ["done\n"]
    assert agent.lines("runs") == []


def test_an_agent_restarted_by_its_own_run_does_not_end_itself(server, agent):
    agent.begin(server.entry("c1", LASTING))
    begun(server, agent)
    agent.kill()
    within = f"import os, sys; os.environ['STOKER_RUN_DIR'] = {str(agent.run_folder('c1'))!r}; "
    agent.start(
        program=("-c", within + "os.execv(sys.executable, [sys.executable, '-m', 'stoker_agent', *sys.argv[1:]])")
    )
    assert server.result("c1")["deploy_status_code"] == 137
    assert agent.process.poll() is None


#: 1000 characters of which each takes two bytes in a file, and six in a report.
WIDE = "#!/usr/bin/env python3\nimport os\nprint('é' * 1000)\nopen(os.environ['WORK'] + '/runs', 'a').write('ran\\n')\n"


@pytest.mark.parametrize("then", ["FAIL", "RERUN"])
def test_a_result_is_reported_from_memory_if_the_disk_is_full(server, agent, then):
    server.withdraws_reported = False
    server.give(server.entry("c1", WIDE, deploy_on_interrupt=then))
    program = ("-B", "-m", "stoker_agent")  # the limit would truncate compiled modules
    agent.start(program=program, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)))
    assert server.result("c1")["deploy_stdout"] == "é" * 1000 + "\n"
    agent.await_acknowledged("c1")
    assert not agent.run_folder("c1").joinpath("result.json").exists()
    agent.kill()
    agent.run(server.entry("c1", WIDE, deploy_on_interrupt=then), server.entry("c2", "true"))
    assert agent.lines("runs") == ["ran"]
    assert len(server.results("c1")) == 1


@pytest.fixture
def small_disk(agent):
    """Return a function that makes the agent's state a file system of some kilobytes."""
    state = agent.root / "state"
    state.mkdir(parents=True)

    def mount(kilobytes):
        command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(state)]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("no file system can be mounted here")
        return state

    yield mount
    agent.end_all()
    subprocess.run(["umount", str(state)], check=False)


#: Tries again soon to write to a disk, and soon reports a change of that.
IMPATIENT = shortened({"disk.PAUSE_SECONDS": 0.2, "facts_report._LEAST_SECONDS": 0.1})


def fill(folder):
    file = folder / "fill"
    with pytest.raises(OSError, match="No space left"), file.open("wb") as handle:
        handle.write(b"x" * 2_000_000)
    return file


def test_on_a_full_disk_no_run_begins_until_space_is_free(server, agent, small_disk):
    filler = fill(small_disk(64))
    agent.begin(server.entry("c1", ONCE), program=IMPATIENT)
    reason = f"the agent cannot write {agent.root}/state/runs: No space left on device"
    server.until(lambda: ("c1", {"state": "WAITING", "message": reason}) in server.progress)
    server.until(lambda: server.facts[-1:] and server.facts[-1].get("problem") == reason)
    server.give(*server.deployments, {**server.entry("c2", ONCE), "cancel": True})
    assert server.result("c2")["deploy_status_reason"] == "Cancelled before it began"
    assert agent.lines("runs") == []
    filler.unlink()
    assert server.result("c1")["deploy_status_code"] == 0
    assert agent.lines("runs") == ["ran"]
    server.until(lambda: "problem" not in server.facts[-1])


@pytest.mark.parametrize("is_new", [False, True])
def test_an_agent_without_write_access_starts_and_says_so(server, agent, small_disk, is_new):
    state = small_disk(512)
    server.give(server.entry("c1", ONCE))
    if not is_new:
        agent.start()
        server.result("c1")
        agent.end()
    subprocess.run(["mount", "-o", "remount,ro", str(state)], check=True)
    agent.start(program=IMPATIENT)
    reason = f"the agent cannot write {state}/runs: Read-only file system"
    server.until(lambda: server.facts[-1:] and server.facts[-1].get("problem") == reason)
    server.give(server.entry("c2", ONCE))
    server.until(lambda: ("c2", {"state": "WAITING", "message": reason}) in server.progress)
    assert "cannot write" in agent.log
    assert agent.process.poll() is None
    server.give()
    subprocess.run(["mount", "-o", "remount,rw", str(state)], check=True)
    server.until(lambda: "problem" not in server.facts[-1])
    assert agent.run(server.entry("c3", ONCE))["deploy_status_code"] == 0


def test_deleted_directories_are_created_again(server, agent):
    agent.begin(server.entry("c1", ONCE))
    agent.await_acknowledged("c1")
    # At once: the agent may write a file while the folder is emptied.
    shutil.rmtree(agent.root.joinpath("state").rename(agent.root / "deleted"), ignore_errors=True)
    assert agent.run(server.entry("c2", ONCE))["deploy_status_code"] == 0
    assert "another agent runs" in agent.call("run", "--root", str(agent.root)).stderr
    assert agent.lines("runs") == ["ran"] * 2


@pytest.mark.parametrize("then", ["FAIL", "RERUN"])
def test_a_result_that_could_not_be_stored_is_stored_before_the_agent_ends(server, agent, small_disk, then):
    state = small_disk(512)
    agent.begin(server.entry("c1", f"{ONCE}; {HOLD}", deploy_on_interrupt=then))
    server.until(lambda: agent.lines("runs"))
    server.until((state / "facts.json").exists)
    server.vanish()
    # The agent has started and handled its document, so it no longer replaces files, which would make room again.
    server.until(lambda: "poll.failed" in agent.log)
    filler = fill(state)
    agent.release()
    server.until(lambda: "result.not_stored: cannot store the result of c1" in agent.log)
    filler.unlink()
    agent.end()
    server.come_back()
    agent.start()
    assert server.result("c1")["deploy_status_code"] == 0
    assert agent.lines("runs") == ["ran"]


def test_output_of_ended_runs_makes_room_for_results(server, agent, small_disk):
    small_disk(1024)
    agent.begin(server.entry("c1", f"{ONCE}; {HOLD}; head -c 3000000 /dev/zero | tr '\\0' x; true"))
    server.until(lambda: agent.lines("runs"))
    server.vanish()
    agent.release()
    server.until(agent.run_folder("c1").joinpath("result.json").exists)
    server.come_back()
    assert server.result("c1")["deploy_status_code"] == 0


def test_another_agents_run_of_the_same_config_is_left_alone(server, agent, tmp_path):
    """Several agents may be on one machine, and REST clients may give several servers one config."""
    server.withdraws_reported = False
    tmp_path.joinpath("second").mkdir()
    second = type(agent)(tmp_path / "second", server)
    try:
        agent.begin(server.entry("c1", LASTING))
        theirs = begun(server, agent)
        second.start()
        begun(server, second)
        second.kill()
        second.start()
        assert server.result("c1")["deploy_status_code"] == 137
        assert theirs in agent.living()
    finally:
        second.end_all()
