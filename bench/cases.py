"""The cases. COMMON runs against any Heat; OURS uses Stoker's extensions."""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from bench.api import Api
from bench.measure import cpu_seconds, load
from bench.swarm import enroll_servers
from support import templates
from support.templates import define, deployment

SCRIPT = "#!/bin/sh\n" + "# a line as long as lines of scripts are\n" * 25 + "echo ok\n"
_CONFIG = templates.config(SCRIPT, inputs=("foo", "bar"), outputs=("result",))
CONFIG = {"name": "c", "options": {}, **_CONFIG["properties"]}
RESULT = {"deploy_stdout": "ok", "deploy_stderr": "", "deploy_status_code": 0, "result": "x"}

Result = dict[str, float]


@dataclass(frozen=True)
class Target:
    """The service to measure: its API, the ids of its processes, and the scale of the repetitions."""

    api: Api
    pids: tuple[int, ...]
    scale: float = 1.0

    def count(self, full: int) -> int:
        """Return the scaled number of repetitions, at least 10."""
        return max(10, int(full * self.scale))

    def config(self) -> str:
        """Create a config and return its id."""
        return self.api.create_config(**CONFIG)


def template(deployments: int, *, servers: int = 1, signal: str = "NO_SIGNAL", chain: bool = False) -> dict[str, Any]:
    """Return a template with deployments, distributed over servers; ``chain`` makes each depend on the previous one."""
    resources: dict[str, Any] = {"config": _CONFIG}
    for s in range(servers):
        resources[f"server{s}"] = templates.server(f"s{s}", software_config_transport="POLL_SERVER_HEAT")
    for d in range(deployments):
        after = (f"dep{d - 1}",) if chain and d else ()
        values = {"input_values": {"foo": str(d), "bar": "b"}, "signal_transport": signal}
        resources[f"dep{d}"] = deployment(server=f"server{d % servers}", after=after, **values)
    return templates.template(resources)


def config_create(target: Target, at_once: int) -> Result:
    """Create configs."""
    return load(lambda _: target.api("POST", "/software_configs", CONFIG), target.count(1000), at_once, target.pids)


def deployment_create(target: Target, at_once: int) -> Result:
    """Create completed deployments, each on another server."""
    config = target.config()

    def one(i: int) -> None:
        body = {
            "config_id": config,
            "server_id": str(uuid.uuid4()),
            "action": "CREATE",
            "status": "COMPLETE",
            "input_values": {"foo": str(i)},
        }
        target.api("POST", "/software_deployments", body)

    return load(one, target.count(1000), at_once, target.pids)


def metadata(target: Target, deployments: int, at_once: int) -> Result:
    """Read the metadata of a server with ``deployments`` deployments."""
    config, server = target.config(), str(uuid.uuid4())
    for _ in range(deployments):
        body = {"config_id": config, "server_id": server, "action": "CREATE", "status": "IN_PROGRESS"}
        target.api("POST", "/software_deployments", {**body, "input_values": {"foo": "1"}})
    path = f"/software_deployments/metadata/{server}"
    return load(lambda _: target.api("GET", path), target.count(2000), at_once, target.pids)


def stack(target: Target, deployments: int, servers: int, chain: bool = False) -> Result:
    """Create and delete a stack. Return wall times and CPU seconds."""
    cpu, began = cpu_seconds(target.pids), time.perf_counter()
    name, id = target.api.create_stack(template(deployments, servers=servers, chain=chain))
    target.api.wait(name, id, "CREATE_COMPLETE")
    created, used = time.perf_counter() - began, cpu_seconds(target.pids) - cpu
    cpu, began = cpu_seconds(target.pids), time.perf_counter()
    target.api.delete_stack(name, id)
    return {
        "create_s": round(created, 3),
        "create_cpu_s": round(used, 3),
        "create_cpu_ms_each": round(used * 1000 / deployments, 3),
        "delete_s": round(time.perf_counter() - began, 3),
        "delete_cpu_s": round(cpu_seconds(target.pids) - cpu, 3),
    }


def signal_to_complete(target: Target) -> Result:
    """Measure the time from a signal's request until the stack's status is complete."""
    latencies = []
    for _ in range(target.count(20)):
        name, id = target.api.create_stack(template(1, signal="HEAT_SIGNAL"))
        until_waiting(target.api, name, id, "dep0")
        began = time.perf_counter()
        target.api("POST", f"/stacks/{name}/{id}/resources/dep0/signal", RESULT)
        target.api.wait(name, id, "CREATE_COMPLETE", poll=0.001)
        latencies.append(time.perf_counter() - began)
        target.api("DELETE", f"/stacks/{name}/{id}")
    return spread(latencies)


def signal_to_metadata(target: Target) -> Result:
    """Measure the time from a signal's request until the server's metadata contains the dependent's config."""
    latencies = []
    for _ in range(target.count(20)):
        name, id = target.api.create_stack(template(2, signal="HEAT_SIGNAL", chain=True))
        server = until_waiting(target.api, name, id, "dep0", of="server0")
        began = time.perf_counter()
        target.api("POST", f"/stacks/{name}/{id}/resources/dep0/signal", RESULT)
        while len(target.api("GET", f"/software_deployments/metadata/{server}")["metadata"]) < 2:
            time.sleep(0.001)
        latencies.append(time.perf_counter() - began)
        target.api("DELETE", f"/stacks/{name}/{id}")
    return spread(latencies)


def document_poll(target: Target) -> Result:
    """Measure an agent's poll without a change."""
    [server] = enroll_servers(target.api.call, [f"bench-{uuid.uuid4()}"]).values()
    body = {"config_id": target.config(), "server_id": server["id"], "action": "CREATE", "status": "IN_PROGRESS"}
    for _ in range(10):
        target.api("POST", "/software_deployments", body)
    headers = {"Authorization": f"Bearer {server['key']}"}
    found = target.api("GET", "/agent/v1/document", headers=headers, absolute=True)
    headers["If-None-Match"] = f'"{found["revision"]}"'
    return load(
        lambda _: target.api("GET", "/agent/v1/document?wait=0", headers=headers, absolute=True),
        target.count(3000),
        8,
        target.pids,
    )


def hook_to_hook(target: Target) -> Result:
    """
    Measure the time from the end of a script to the start of the dependent deployment's script, with a real agent.
    """
    clock = "#!/bin/sh\ndate +%s%N > $heat_outputs_path.start\ndate +%s%N > $heat_outputs_path.end\n"
    steps = target.count(40)
    resources = {
        "server": define("OS::Nova::Server", user_data_format="SOFTWARE_CONFIG"),
        "config": templates.config(clock, outputs=("start", "end")),
    }
    for i in range(steps):
        resources[f"dep{i}"] = deployment(after=(f"dep{i - 1}",) if i else ())
    outputs = {
        f"{which}{i}": {"value": {"get_attr": [f"dep{i}", which]}} for i in range(steps) for which in ("start", "end")
    }
    made = templates.template(resources, outputs=outputs)
    name, id = target.api.create_stack(made)
    target.api.wait(name, id, "CREATE_COMPLETE")
    shown = target.api("GET", f"/stacks/{name}/{id}")["stack"]["outputs"]
    seen = {each["output_key"]: int(each["output_value"]) for each in shown}
    target.api.delete_stack(name, id)
    return spread([(seen[f"start{i}"] - seen[f"end{i - 1}"]) / 1e9 for i in range(1, steps)])


def large_template(target: Target) -> Result:
    """Validate, create in one transaction, preview and delete a template with 1,000 resources."""
    values = ({"get_attr": [f"value{i - 1}", "value"]} if i else "first" for i in range(1000))
    made = templates.template({f"value{i}": define("OS::Heat::Value", value=value) for i, value in enumerate(values)})
    shown: Result = {}
    began = time.perf_counter()
    target.api("POST", "/validate", {"template": made})
    shown["validate_s"] = round(time.perf_counter() - began, 3)
    began = time.perf_counter()
    name, id = target.api.create_stack(made)
    shown["create_s"] = round(time.perf_counter() - began, 3)
    began = time.perf_counter()
    target.api("PUT", f"/stacks/{name}/{id}/preview", {"template": made})
    shown["preview_s"] = round(time.perf_counter() - began, 3)
    target.api.delete_stack(name, id)
    return shown


def long_list(target: Target) -> Result:
    """List 1,000 stacks."""
    stacks = [target.api.create_stack(templates.template({})) for _ in range(1000)]
    latencies = []
    for _ in range(target.count(20)):
        began = time.perf_counter()
        assert len(target.api("GET", "/stacks")["stacks"]) >= 1000
        latencies.append(time.perf_counter() - began)
    for name, id in stacks:
        target.api("DELETE", f"/stacks/{name}/{id}")
    return spread(latencies)


def until_waiting(api: Api, name: str, id: str, resource: str, of: str | None = None) -> str:
    """Wait until ``resource`` waits for its signal. Return the physical id of ``of``, or of the resource."""
    while True:
        shown = {each["resource_name"]: each for each in api("GET", f"/stacks/{name}/{id}/resources")["resources"]}
        waiting = shown.get(resource)
        if waiting and waiting["resource_status"] == "CREATE_IN_PROGRESS" and waiting["physical_resource_id"]:
            found: str = shown[of or resource]["physical_resource_id"]
            return found
        time.sleep(0.02)


def spread(seconds: Iterable[float]) -> Result:
    """Return the median, the maximum and the number of ``seconds``, in milliseconds."""
    latencies = sorted(seconds)
    return {
        "p50_ms": round(statistics.median(latencies) * 1000, 2),
        "max_ms": round(latencies[-1] * 1000, 2),
        "n": len(latencies),
    }


#: What ``bench.floor`` serves, too.
CREATIONS: dict[str, Callable[[Target], Result]] = {
    "config create, 1 at once": lambda t: config_create(t, 1),
    "config create, 8 at once": lambda t: config_create(t, 8),
    "deployment create, 1 at once": lambda t: deployment_create(t, 1),
    "deployment create, 8 at once": lambda t: deployment_create(t, 8),
}
COMMON: dict[str, Callable[[Target], Result]] = {
    **CREATIONS,
    "metadata of 1 deployment": lambda t: metadata(t, 1, 8),
    "metadata of 10 deployments": lambda t: metadata(t, 10, 8),
    "metadata of 50 deployments": lambda t: metadata(t, 50, 8),
    "stack of 10 deployments": lambda t: stack(t, 10, 1),
    "stack of 50 deployments": lambda t: stack(t, 50, 5),
    "stack of 200 deployments": lambda t: stack(t, 200, 20),
    "chain of 20 deployments": lambda t: stack(t, 20, 1, chain=True),
    "signal to stack complete": signal_to_complete,
    "signal to dependent in metadata": signal_to_metadata,
}
OURS: dict[str, Callable[[Target], Result]] = {
    "stack of 1,000 deployments": lambda t: stack(t, 1000, 100),
    # Nearly the largest template that Stoker accepts, of 512 KiB.
    "stack of 2,000 deployments": lambda t: stack(t, max(1000, int(2000 * t.scale)), 100),
    "template of 1,000 resources": large_template,
    "list of 1,000 stacks": long_list,
    "agent poll, nothing new": document_poll,
    "end of a script to start of its dependent": hook_to_hook,
}
