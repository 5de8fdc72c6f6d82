"""YAQL expressions that never end, or that one call never returns from: the kernel ends their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.availability import assert_ends, assert_harmless
from support.processes import list_children
from support.templates import define, document, template

FOR_HOURS = "range(150).select(" * 3 + "range(150).select(1)" + ")" * 3
SMALL = "range(150).select(range(20).select($ + 1).sum()).sum()"
#: One call of C that holds the interpreter for ever, or takes all memory.
IN_ONE_CALL = [
    "str(range(60).aggregate([$1, $1], 1)).len()",
    "range(60).aggregate([$1, $1], 1) = range(60).aggregate([$1, $1], 1)",
    "[range(60).aggregate([$1, $1], 1)].distinct().len()",
    "pow(pow(2, 1000) * pow(2, 1000), pow(2, 1000) * pow(2, 1000), pow(3, 600) * pow(3, 600))",
    "round(5, -1000000000) / 0",
    "('a' * 4000).replace('a', 'b' * 4000)",
    "('a' * 4000).replace({a => 'b' * 4000})",
    "('a' * 4000).replace(regex('a'), 'b' * 4000)",
]


def output(expression):
    return template({"r": define("OS::Heat::Value", value={"yaql": {"expression": expression}})})


def preview(account, template):
    return account.heat("POST", "/stacks/preview", {"stack_name": "s", "template": template})


def test_expressions_that_run_for_hours_end(stoker, reader):
    """One of them, and many that are small: all expressions of a template share one budget."""
    assert preview(reader, output(SMALL)).status == 200
    value = output(SMALL)["resources"]["r"]
    many = document(resources={f"r{i}": value for i in range(200)})

    def attack():
        with ThreadPoolExecutor(2) as pool:
            for answer in pool.map(lambda template: preview(reader, template), [output(FOR_HOURS), many]):
                assert answer.status == 400
                assert "take too long" in answer.body["error"]["message"]
                assert "resources.r" in answer.body["error"]["message"]

    assert_harmless(stoker, attack)
    assert_ends(stoker)


def test_no_single_call_blocks_the_process(stoker, reader):
    def attack():
        for expression in IN_ONE_CALL:
            answer = preview(reader, output(expression))
            assert answer.status == 400, (expression, answer.raw[:200])

    assert_harmless(stoker, attack)


def test_an_expression_whose_process_is_killed_fails_alone(stoker, reader):
    assert preview(reader, output("1")).status == 200
    idle = children(stoker)
    for child in idle:
        os.kill(child, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(preview, reader, output("1 + 1"))
        time.sleep(0.5)  # the expression is in the pipe of the process
        for child in idle:
            os.kill(child, signal.SIGKILL)
        answer = waiting.result()
    assert (answer.status, "has ended; try again" in answer.raw.decode()) == (400, True), answer.raw
    answers = [preview(reader, output("1 + 1")).status for _ in idle]
    assert answers[-1] == 200


def test_an_expression_does_not_fail_for_a_process_that_ended_before_it(stoker, reader):
    for _ in range(2):
        assert preview(reader, output("1")).status == 200
        ended = children(stoker)
        for child in ended:
            os.kill(child, signal.SIGKILL)
        stoker.until(lambda ended=ended: all(map(has_ended, ended)))


def test_the_processes_end_with_the_server(stoker, reader):
    assert preview(reader, output("1")).status == 200
    started = children(stoker)
    assert 1 <= len(started) <= 2
    assert_ends(stoker)
    assert children(stoker) == []  # nothing uses YAQL
    assert not [child for child in started if Path(f"/proc/{child}").exists()]


def children(stoker):
    pids = list_children(stoker.process.pid)
    return [pid for pid in pids if b"_yaql_child" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def has_ended(pid):
    """Return whether its parent can see that the process has ended: it has no command line before."""
    try:
        return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


@pytest.mark.parametrize("_attempt", range(3))
def test_the_first_evaluations_of_a_process_may_be_concurrent(_attempt):
    script = """
import threading
from stoker.hot.scope import Budget
from stoker.hot.functions import yaql

class Scope:
    version = "2018-08-31"
    def __init__(self):
        self.budget = Budget()

failures, barrier = [], threading.Barrier(8)

def evaluate(number):
    barrier.wait()
    for i in range(20):
        expression = f"range({number}).select($ + {i}).sum() + {number * i}"
        try:
            expected = sum(range(number)) + number * i + number * i
            assert yaql.Yaql().evaluate({"expression": expression}, Scope()) == expected
        except BaseException as error:
            failures.append(repr(error))

threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(1, 9)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(failures[:3])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_sets_have_the_same_order_in_every_process():
    """Otherwise an update that changes nothing would run deployments again."""
    script = """
from stoker.hot.functions import yaql
from stoker.hot.scope import Budget

class Scope:
    budget = Budget()

data = {f"key{number}": number for number in range(20)}
print(yaql.Yaql().evaluate({"expression": "$.data.keys()", "data": data}, Scope()))
"""
    command = [sys.executable, "-c", script]
    first, second = (subprocess.run(command, capture_output=True, text=True, timeout=120, check=True) for _ in "12")
    assert "key19" in first.stdout
    assert second.stdout == first.stdout
