"""
How costs grow: `python -m bench growth` runs each case at several sizes on a new Stoker.

A cost is the CPU time of the server's processes. The exponent is the slope of log(cost) over log(size): 1 is linear,
and a cost that should not depend on the size has an exponent near 0. The column "last" is the exponent between the two
largest sizes.
"""

from __future__ import annotations

import http.client
import json
import math
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.api import Api
from bench.cases import RESULT, Target, template
from bench.measure import cpu_seconds
from bench.swarm import enroll_servers
from bench.triggers import to_many

#: Measures one size: returns the CPU time in milliseconds.
Case = Callable[[Target, int], float]

_REPEATS = 20
_MEMBER = {
    "heat_template_version": "2018-08-31",
    "parameters": {"word": {"type": "string"}},
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "word"}}}},
}


@dataclass(frozen=True)
class Series:
    """A case with its sizes. ``most`` is the largest exponent that is no defect."""

    case: Case
    sizes: Sequence[int]
    most: float = 1.05


#: Event streams that one token may have open.
_STREAMS_OF_A_TOKEN = 16


def run(target: Target, only: Iterable[str] | None) -> str:
    """Run the selected series and return a table of them as Markdown."""
    lines = ["| cost | sizes | CPU ms | exponent | last | |", "|---|---|---|---|---|---|"]
    for name, series in SERIES.items():
        if only and not any(part in name for part in only):
            continue
        sizes = [max(2, int(size * target.scale)) for size in series.sizes]
        costs = [max(series.case(target, size), 0.01) for size in sizes]
        total, last = _exponent(sizes, costs), _exponent(sizes[-2:], costs[-2:])
        verdict = "" if max(total, last) <= series.most else f"more than {series.most:g}"
        words = (" / ".join(f"{size:,}" for size in sizes), " / ".join(f"{cost:.3g}" for cost in costs))
        lines.append(f"| {name} | {words[0]} | {words[1]} | {total:.2f} | {last:.2f} | {verdict} |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


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
    resources = {f"m{i}": {"type": "member.yaml", "properties": {"word": f"w{i}"}} for i in range(size)}
    text = {"heat_template_version": "2018-08-31", "resources": resources}
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


def resource_show(target: Target, size: int) -> float:
    """Show one resource of a stack; per call."""
    name, id = target.api.create_stack(template(size))
    target.api.wait(name, id, "CREATE_COMPLETE")
    path = f"/stacks/{name}/{id}/resources/dep{size // 2}"
    try:
        return _cpu_ms(target, lambda: [target.api("GET", path) for _ in range(5 * _REPEATS)]) / (5 * _REPEATS)
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


def projects_by_name(target: Target, size: int) -> float:
    """Find a project by its name among ``size`` projects; per call."""
    word = uuid.uuid4().hex[:8]
    for i in range(size):
        target.api("POST", "/identity/v3/projects", {"project": {"name": f"{word}-{i}"}}, absolute=True)
    path = f"/identity/v3/projects?name={word}-{size // 2}"
    calls = 5 * _REPEATS
    return _cpu_ms(target, lambda: [target.api("GET", path, absolute=True) for _ in range(calls)]) / calls


def signal_of_large_config(target: Target, size: int) -> float:
    """Report the result of a client's run of a config of ``size`` kB; per call."""
    config = target.api.create_config(config="#!/bin/sh\n" + "# comment\n" * (size * 100), outputs=[])
    ids = []
    for _ in range(_REPEATS):
        deployment = {
            "config_id": config,
            "server_id": str(uuid.uuid4()),
            "action": "CREATE",
            "status": "IN_PROGRESS",
            "signal_transport": "HEAT_SIGNAL",
        }
        made = target.api("POST", "/software_deployments", deployment)["software_deployment"]
        ids.append(made["id"])
    done = {"status": "COMPLETE", "output_values": {}}

    def report() -> None:
        for id in ids:
            target.api("PUT", f"/software_deployments/{id}", done)

    return _cpu_ms(target, report) / _REPEATS


def event_streams(target: Target, size: int, agents: int = 500) -> float:
    """Run a trigger on simulated agents while ``size`` - 1 clients follow its events; the whole trigger."""
    before = {each["id"] for each in target.api("GET", "/software_triggers")["software_triggers"]}
    tokens = [Api(target.api.environment).token for _ in range(0, size, _STREAMS_OF_A_TOKEN)]
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(0.1):
            present = target.api("GET", "/software_triggers")["software_triggers"]
            if new := [each["id"] for each in present if each["id"] not in before]:
                holders = [tokens[n // _STREAMS_OF_A_TOKEN] for n in range(size - 1)]
                streams = [threading.Thread(target=_read_stream, args=(target, new[0], token)) for token in holders]
                for stream in streams:
                    stream.start()
                for stream in streams:
                    stream.join()
                return

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        return to_many(Target(target.api, target.pids), agents)["cpu_s_per_1000"] * agents
    finally:
        ended.set()
        follower.join()


def _read_stream(target: Target, id: str, token: str) -> None:
    connection = http.client.HTTPConnection(target.api.base.hostname or "", target.api.base.port, timeout=120)
    path = f"{target.api.base.path.rstrip('/')}/events?subject=trigger:{id}"
    connection.request("GET", path, headers={"X-Auth-Token": token, "Accept": "text/event-stream"})
    response = connection.getresponse()
    while response.read(65536):
        pass
    connection.close()


SERIES: dict[str, Series] = {
    "create a stack of deployments": Series(partial(stack_create, signal="NO_SIGNAL"), (50, 200, 800)),
    "create a stack of deployments with HEAT_SIGNAL": Series(
        partial(stack_create, signal="HEAT_SIGNAL"), (50, 200, 800)
    ),
    "create N nested stacks": Series(nested_stacks, (50, 200, 800)),
    "update one of N deployments": Series(update_of_one, (50, 200, 800)),
    "update all of N deployments": Series(partial(update_of_one, changed=None), (50, 200, 800)),
    "show one resource of a stack of N": Series(resource_show, (50, 200, 800), 0.1),
    "an agent works off N pending runs": Series(drain, (50, 200, 800)),
    "find a project by its name among N": Series(projects_by_name, (500, 2000, 8000), 0.1),
    "result of a run of a config of N kB": Series(signal_of_large_config, (1, 30, 900), 0.1),
    "a trigger on 500 servers with N - 1 event streams": Series(event_streams, (2, 11, 51), 0.1),
}
