"""On-demand runs: latency of triggers, throughput of output in one process, latency of a cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.cases import Result, Target, spread
from bench.measure import cpu_seconds, wait_until
from bench.swarm import Swarm, enroll_servers
from bench.swarm.connection import Endpoint
from support.templates import define, template

#: Seconds until each of a thousand agents has an open poll.
_SETTLING = 3.0
_LINE = b"a line of output as long as lines of output are, more or less: 0123456789\n"
_CLOCK = "#!/bin/sh\ndate +%s%N > $heat_outputs_path.start\n"
_LASTING = '#!/bin/sh\necho $$ > "$into"\nsleep 300\n'


def to_hook(target: Target) -> Result:
    """Measure the time from a trigger's request to the start of its script on a real agent."""
    with _local_server(target) as server:
        config = _config(target, _CLOCK, outputs=["start"])
        latencies = []
        for _ in range(target.count(60)):
            began = time.time()
            trigger = _trigger(target, config, [server])
            wait_until(lambda id=trigger: target.api.show_trigger(id)["status"] != "IN_PROGRESS")
            deployment = target.api.show_trigger(trigger)["targets"][0]["deployment_id"]
            shown = target.api("GET", f"/software_deployments/{deployment}")["software_deployment"]
            latencies.append(int(shown["output_values"]["start"]) / 1e9 - began)
    return spread(latencies)


def to_many(target: Target, agents: int) -> Result:
    """Measure the time from a trigger's request until each of ``agents`` simulated agents has received it."""
    count = target.count(agents)

    word = uuid.uuid4().hex[:8]
    servers = enroll_servers(target.api.call, [f"{word}-{i}" for i in range(count)])
    swarm = _swarm(target, {name: each["key"] for name, each in servers.items()})
    config = _config(target, "#!/bin/sh\n")
    asked: dict[str, Any] = {}

    def ask() -> None:
        wait_until(lambda: swarm.polling == count)
        time.sleep(_SETTLING)
        asked["cpu"], asked["at"] = cpu_seconds(target.pids), time.time()
        asked["id"] = _trigger(target, config, list(servers))

    asking = threading.Thread(target=ask)
    asking.start()
    asyncio.run(swarm.run(lambda: "id" in asked and _newest(target)["status"] != "IN_PROGRESS"))
    asking.join()
    used = cpu_seconds(target.pids) - asked["cpu"]
    assert len(swarm.begin_times) == count, f"{len(swarm.begin_times)} of {count} agents had it"
    return {
        **spread(at - asked["at"] for at in swarm.begin_times.values()),
        "cpu_s_per_1000": round(used * 1000 / count, 3),
    }


def log_lines(target: Target) -> Result:
    """Send the output of eight simultaneous runs as agents do."""
    config = _config(target, "#!/bin/sh\n")

    word = uuid.uuid4().hex[:8]
    servers = enroll_servers(target.api.call, [f"{word}-{i}" for i in range(8)])
    trigger = _trigger(target, config, list(servers))
    deployments = {each["server_name"]: each["deployment_id"] for each in target.api.show_trigger(trigger)["targets"]}
    chunk = _LINE * (128 * 1024 // len(_LINE))
    times = target.count(30)

    def send(name: str) -> None:
        key = {"Authorization": f"Bearer {servers[name]['key']}"}
        shown = target.api("GET", f"/software_deployments/{deployments[name]}")["software_deployment"]
        for i in range(times):
            path = f"/agent/v1/runs/{shown['config_id']}/logs?stream=stdout&offset={i * len(chunk)}"
            target.api.send("POST", path, chunk, {**key, "Content-Type": "application/octet-stream"})

    cpu, began = cpu_seconds(target.pids), time.perf_counter()
    sending = [threading.Thread(target=send, args=(name,)) for name in servers]
    for each in sending:
        each.start()
    for each in sending:
        each.join()
    wall, used = time.perf_counter() - began, cpu_seconds(target.pids) - cpu
    lines = times * len(servers) * len(chunk) // len(_LINE)
    target.api("POST", f"/software_triggers/{trigger}/cancel")
    return {"lines_per_s": round(lines / wall), "cpu_s_per_million": round(used * 1e6 / lines, 2)}


def to_gone(target: Target) -> Result:
    """Measure the time from a trigger's cancel request until its process on the server has ended."""
    latencies = []
    with _local_server(target) as server, tempfile.TemporaryDirectory() as folder:
        config = _config(target, _LASTING, inputs=["into"])
        for i in range(target.count(20)):
            into = Path(folder, str(i))
            trigger = _trigger(target, config, [server], into=str(into))
            wait_until(lambda path=into: path.exists() and path.read_text().endswith("\n"))
            pid = int(into.read_text())
            began = time.perf_counter()
            target.api("POST", f"/software_triggers/{trigger}/cancel")
            wait_until(lambda pid=pid: not Path(f"/proc/{pid}").exists(), pause=0.001)
            latencies.append(time.perf_counter() - began)
            wait_until(lambda id=trigger: target.api.show_trigger(id)["status"] != "IN_PROGRESS")
    return spread(latencies)


@contextlib.contextmanager
def _local_server(target: Target) -> Iterator[str]:
    """Create a server with a real agent and yield its id."""
    made = template(
        {"server": define("OS::Nova::Server", image="none", flavor="none")},
        outputs={"id": {"value": {"get_resource": "server"}}},
    )
    name, id = target.api.create_stack(made)
    try:
        target.api.wait(name, id, "CREATE_COMPLETE")
        yield target.api("GET", f"/stacks/{name}/{id}")["stack"]["outputs"][0]["output_value"]
    finally:
        target.api.delete_stack(name, id)


def _config(target: Target, script: str, *, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> str:
    named = [[{"name": name} for name in names] for names in (inputs, outputs)]
    return target.api.create_config(config=script, inputs=named[0], outputs=named[1])


def _trigger(target: Target, config: str, servers: list[str], **inputs: str) -> str:
    return target.api.start_trigger(config, action="BENCH", servers=servers, input_values=inputs)


def _newest(target: Target) -> Any:
    """Return the newest trigger, without its targets: to read thousands of them again and again would be measured."""
    return target.api("GET", "/software_triggers?limit=1")["software_triggers"][0]


def _swarm(target: Target, keys: dict[str, str]) -> Swarm:
    assert target.api.base.hostname and target.api.base.port
    return Swarm(Endpoint(target.api.base.hostname, target.api.base.port), list(keys.values()))


OURS: dict[str, Callable[[Target], Result]] = {
    "trigger to script, 1 agent": to_hook,
    "trigger to 1,000 agents": partial(to_many, agents=1000),
    "trigger to 3,000 agents": partial(to_many, agents=3000),
    "live output": log_lines,
    "cancel to process gone": to_gone,
}
