"""YAQL expressions that never ended, or that one call never came back from."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.availability import assert_ends, assert_harmless

FOR_HOURS = "range(150).select(" * 3 + "range(150).select(1)" + ")" * 3
SMALL = "range(150).select(range(20).select($ + 1).sum()).sum()"
#: One call of C that holds the interpreter for ever, or takes all memory.
IN_ONE_CALL = [
    "str(range(60).aggregate([$1, $1], 1)).len()",
    "range(60).aggregate([$1, $1], 1) = range(60).aggregate([$1, $1], 1)",
    "[range(60).aggregate([$1, $1], 1)].distinct().len()",
    "range(150).aggregate([[$1]], 1).len()",
    "pow(pow(2, 1000) * pow(2, 1000), pow(2, 1000) * pow(2, 1000), pow(3, 600) * pow(3, 600))",
    "round(5, -1000000000) / 0",
    "('a' * 4000).replace('a', 'b' * 4000)",
    "('a' * 4000).replace({a => 'b' * 4000})",
    "('a' * 4000).replace(regex('a'), 'b' * 4000)",
]


def output(expression):
    return {
        "heat_template_version": "2018-08-31",
        "resources": {"r": {"type": "OS::Heat::Value", "properties": {"value": {"yaql": {"expression": expression}}}}},
    }


def preview(account, template):
    return account.heat("POST", "/stacks/preview", {"stack_name": "s", "template": template})


def test_expressions_that_run_for_hours_end(stoker, reader):
    """One of them, and many that are small: all expressions of a template share one budget."""
    assert preview(reader, output(SMALL)).status == 200
    value = output(SMALL)["resources"]["r"]
    many = {"heat_template_version": "2018-08-31", "resources": {f"r{i}": value for i in range(200)}}

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


@pytest.mark.parametrize("_attempt", range(3))
def test_the_first_evaluations_of_a_process_may_be_concurrent(_attempt):
    """YAQL's modules import one another in a circle; its parser keeps its state in itself."""
    script = """
import threading
from stoker.hot.budget import Budget
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
            assert yaql.evaluate({"expression": expression}, Scope()) == expected
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
