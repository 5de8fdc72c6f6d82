"""The function that evaluates YAQL expressions, in a child process with limits."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from signal import SIGPROF
from typing import Any

from stoker import json_values
from stoker.hot.flaw import Flaw
from stoker.hot.functions.base import Function, is_call
from stoker.hot.scope import Budget, Scope
from stoker.hot.text import check_plain
from stoker.hot.words import clip
from stoker.model.errors import Invalid, RequestLimitExceeded, StackValidationFailed

#: -P: the script's folder, which has a module ``yaql``, is no place to import from.
_COMMAND = (sys.executable, "-P", str(Path(__file__).with_name("_yaql_child.py")))
#: Child processes at most; more expressions wait.
_MOST_CHILDREN = 2
#: Elapsed milliseconds after which a child is killed whose processor time is not used up: the machine hardly runs it.
_PATIENCE = 60_000


class Yaql(Function):
    """``{yaql: {expression: text, data: value}}``: what a YAQL expression makes of the data, its ``$.data``."""

    name = "yaql"
    since = "2016-10-14"
    condition_since = "2017-09-01"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if not isinstance(argument, dict) or not {"expression"} <= set(argument) <= {"expression", "data"}:
            raise StackValidationFailed('"yaql" needs a map with an "expression" and perhaps "data"')
        expression = argument["expression"]
        if not isinstance(expression, str) and (is_value or not is_call(expression)):
            raise StackValidationFailed('"yaql" expression must be text')
        if isinstance(expression, str) and not is_value:
            _run({"expression": expression}, Budget())

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        result = _run({"expression": argument["expression"], "data": argument.get("data", {})}, scope.budget)
        try:
            check_plain(result)
        except Flaw as flaw:
            raise StackValidationFailed(f'"yaql": {flaw.sentence}') from None
        return result


def _run(request: dict[str, Any], budget: Budget) -> Any:
    """Return the value of an expression. Raises StackValidationFailed, RequestLimitExceeded."""
    try:
        budget.spend_yaql(0)
        seconds, answer = _ask(json.dumps(request | {"seconds": budget.yaql_seconds}).encode())
        budget.spend_yaql(seconds)
        reply = json_values.decode(answer, "the result")
    except RequestLimitExceeded as error:
        raise RequestLimitExceeded(f'"yaql": {error.message}') from None
    except Invalid as error:
        raise StackValidationFailed(f'"yaql": {error.message}') from None
    if "error" in reply:
        raise StackValidationFailed(f'"yaql": {clip(reply["error"])}')
    return reply["value"]


class _Child:
    """A process that evaluates one expression at a time. It ends when the server does, because its input ends."""

    def __init__(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STOKER_")}
        # Every child gives a set, such as the keys of a map, in the same order; otherwise an update without a change
        # would run deployments again.
        environment["PYTHONHASHSEED"] = "0"
        self._process = subprocess.Popen(
            _COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )

    def ask(self, request: bytes) -> bytes:
        """Send a line and return the answer, which is empty if the process has ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(request + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return b""
        poll = select.poll()
        poll.register(self._process.stdout, select.POLLIN)
        return self._process.stdout.readline() if poll.poll(_PATIENCE) else b""

    def has_ended(self) -> bool:
        """Return whether the process has ended by itself."""
        return self._process.poll() is not None

    def end(self) -> int:
        """End the process and return its exit status."""
        self._process.kill()
        self._process.communicate()
        return self._process.returncode


_idle: list[_Child] = []
_places = threading.BoundedSemaphore(_MOST_CHILDREN)


def _ask(request: bytes) -> tuple[float, bytes]:
    """Return processor time and answer. The first expression starts a child; most servers never evaluate one."""
    with _places:
        try:
            # The kernel may have ended it because memory was short. No expression, and so no stack, fails for that.
            while (child := _idle.pop()).has_ended():
                child.end()
        except IndexError:
            child = _Child()
        seconds, _, answer = child.ask(request).partition(b" ")
        if answer:
            _idle.append(child)
            return float(seconds), answer
        if child.end() == -SIGPROF:
            return float("inf"), b""
    raise Invalid("the process that evaluates expressions has ended; try again")


@atexit.register
def _end_children() -> None:
    for child in _idle:
        child.end()
