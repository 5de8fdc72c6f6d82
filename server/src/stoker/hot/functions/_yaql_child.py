"""
The process that evaluates YAQL expressions: a script that imports YAQL and nothing of Stoker.

YAQL limits neither the time nor the memory of one call, so the operating system does. Each line of the input is a JSON
object: ``expression`` and ``seconds`` (processor time, after which the kernel ends the process, also within a call of
C), and ``data`` unless the expression is only parsed. Each line of the output answers one: ``value`` or ``error``.
"""

from __future__ import annotations

import collections.abc  # YAQL uses it without importing it
import json
import resource
import signal
import sys
import time
from functools import lru_cache
from typing import Any

import yaql

#: Bytes of address space of this process.
_MEMORY = 256 * 1024 * 1024
#: Characters of a result as JSON.
_RESULT = 8 * 1024 * 1024
#: Characters of an error; the caller shortens it further.
_ERROR = 1000
#: Heat's limits: items of one iteration, and bytes of one object without its parts.
_OPTIONS = {"yaql.limitIterators": 200, "yaql.memoryQuota": 10_000, "yaql.convertTuplesToLists": True}

_engine = lru_cache(maxsize=64)(yaql.YaqlFactory().create(_OPTIONS))
_context = yaql.create_context()


def _answer(request: dict[str, Any]) -> str:
    try:
        expression = _engine(request["expression"])
        if "data" not in request:
            return json.dumps({"value": None})
        value = expression.evaluate({"data": request["data"]}, _context.create_child_context())
        answer = json.dumps({"value": value}, default=_plain)
    except MemoryError:
        return json.dumps({"error": "the expression takes too much memory"})
    except Exception as error:
        # An expression can fail with any exception.
        return json.dumps({"error": str(error)[:_ERROR] or type(error).__name__})
    return answer if len(answer) < _RESULT else json.dumps({"error": "the result is too large"})


def _plain(value: Any) -> Any:
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, collections.abc.Set):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        started = time.process_time()
        request = json.loads(line)  # noqa: TID251  # the server wrote it
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
        answer = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(time.process_time() - started, answer, flush=True)


if __name__ == "__main__":
    _main()
