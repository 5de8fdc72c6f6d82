"""
How costs grow: `python -m bench growth` runs each case at several sizes on a new Stoker.

A cost is the CPU time of the server's processes. The exponent is the slope of log(cost) over log(size): 1 is linear.
The column "last" is the exponent between the two largest sizes.
"""

from __future__ import annotations

import json
import math
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from bench.cases import RESULT, Target, template
from bench.measure import cpu_seconds
from bench.swarm import enroll_servers
from support import templates
from support.templates import define

#: Measures one size: returns the CPU time in milliseconds.
Case = Callable[[Target, int], float]

_SIZES = (50, 200, 800)
#: The largest exponent that is no defect.
_MOST = 1.05
_MEMBER = templates.template(
    {"value": define("OS::Heat::Value", value={"get_param": "word"})}, parameters={"word": {"type": "string"}}
)


def run(target: Target, only: Iterable[str] | None) -> None:
    """Run the selected series, and print a table of them as Markdown."""
    print("| cost | sizes | CPU ms | exponent | last | |\n|---|---|---|---|---|---|", flush=True)
    sizes = [max(2, int(size * target.scale)) for size in _SIZES]
    for name, case in SERIES.items():
        if only and not any(part in name for part in only):
            continue
        costs = [max(case(target, size), 0.01) for size in sizes]
        total, last = _exponent(sizes, costs), _exponent(sizes[-2:], costs[-2:])
        verdict = "" if max(total, last) <= _MOST else f"more than {_MOST:g}"
        words = (" / ".join(f"{size:,}" for size in sizes), " / ".join(f"{cost:.3g}" for cost in costs))
        print(f"| {name} | {words[0]} | {words[1]} | {total:.2f} | {last:.2f} | {verdict} |", flush=True)


def _exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """Return the slope of the line through the points (log size, log cost), by least squares."""
    points = [(math.log(size), math.log(cost)) for size, cost in zip(sizes, costs, strict=True)]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def _cpu_ms(target: Target, do: Callable[[], Any]) -> float:
    began = cpu_seconds(target.pids)
    do()
    return (cpu_seconds(target.pids) - began) * 1000


def stack_create(target: Target, size: int, signal: str) -> float:
    """Create a stack of deployments, until they wait for signals or are complete."""
    name, id = f"g{uuid.uuid4().hex[:8]}", ""

    def create() -> None:
        nonlocal id
        body = {"stack_name": name, "template": template(size, signal=signal), "disable_rollback": True}
        id = target.api("POST", "/stacks", body)["stack"]["id"]
        if signal == "NO_SIGNAL":
            target.api.wait(name, id, "CREATE_COMPLETE")
        else:
            _until_all_wait(target, name, id, size)

    try:
        return _cpu_ms(target, create)
    finally:
        target.api.delete_stack(name, id)


def _until_all_wait(target: Target, name: str, id: str, size: int) -> None:
    """Wait until the last deployment of the stack waits for its signal, at the cost of a few requests."""
    path = f"/stacks/{name}/{id}/resources/dep{size - 1}"
    while not target.api("GET", path)["resource"].get("physical_resource_id"):
        time.sleep(0.2)


def nested_stacks(target: Target, size: int) -> float:
    """Create a stack whose members are nested stacks of one file."""
    text = templates.template({f"m{i}": define("member.yaml", word=f"w{i}") for i in range(size)})
    made: list[tuple[str, str]] = []

    def create() -> None:
        made.append(target.api.create_stack(text, files={"member.yaml": json.dumps(_MEMBER)}))
        target.api.wait(*made[0], "CREATE_COMPLETE")

    try:
        return _cpu_ms(target, create)
    finally:
        target.api.delete_stack(*made[0])


def update_of_one(target: Target, size: int, changed: int | None = 1) -> float:
    """Change the input of one deployment of a stack, or of all of them (None)."""
    text = template(size)
    name, id = target.api.create_stack(text)
    target.api.wait(name, id, "CREATE_COMPLETE")
    for i in range(size if changed is None else changed):
        text["resources"][f"dep{i}"]["properties"]["input_values"]["foo"] = "changed"

    def update() -> None:
        target.api("PUT", f"/stacks/{name}/{id}", {"template": text})
        target.api.wait(name, id, "UPDATE_COMPLETE")

    try:
        return _cpu_ms(target, update)
    finally:
        target.api.delete_stack(name, id)


def drain(target: Target, size: int) -> float:
    """Report the results of a server's pending runs one by one, with an open poll of the document, as an agent does."""
    [server] = enroll_servers(target.api.call, [f"drain-{uuid.uuid4().hex[:8]}"]).values()
    headers = {"Authorization": f"Bearer {server['key']}", "Content-Type": "application/json"}
    for i in range(size):
        body = {"config_id": target.config(), "server_id": server["id"], "action": "CREATE", "status": "IN_PROGRESS"}
        target.api("POST", "/software_deployments", {**body, "input_values": {"foo": str(i)}})

    pending: queue.SimpleQueue[str] = queue.SimpleQueue()

    def poll() -> None:
        tag, known = "", set[str]()
        while True:
            path = f"/agent/v1/document?wait={2 if tag else 0}"
            status, answer, text = target.api.send("GET", path, None, {**headers, "If-None-Match": tag})
            assert status in (200, 304), text
            if status == 200:
                tag, runs = answer["ETag"], [run["id"] for run in json.loads(text)["deployments"]]
                for run in runs:
                    if run not in known:
                        pending.put(run)
                known.update(runs)
                if not runs:
                    return

    def work_off() -> None:
        poller = threading.Thread(target=poll)
        poller.start()
        for _ in range(size):
            result = json.dumps(RESULT).encode()
            status, _, text = target.api.send("POST", f"/agent/v1/runs/{pending.get()}/signal", result, headers)
            assert status < 300, text
        poller.join()

    return _cpu_ms(target, work_off)


SERIES: dict[str, Case] = {
    "create a stack of deployments": partial(stack_create, signal="NO_SIGNAL"),
    "create a stack of deployments with HEAT_SIGNAL": partial(stack_create, signal="HEAT_SIGNAL"),
    "create N nested stacks": nested_stacks,
    "update one of N deployments": update_of_one,
    "update all of N deployments": partial(update_of_one, changed=None),
    "an agent works off N pending runs": drain,
}
