"""
Stacks of servers on a real OpenStack: time and CPU of creating and deleting them, by several services in one run.

    export OS_CLIENT_CONFIG_FILE=clouds.yaml
    python -m bench.cloud --cloud demo stoker=stoker-orchestration:PID heat=orchestration:PID,PID

Each argument names a service of the catalog, and the processes whose CPU time, with that of their children, counts.
Databases, message brokers and the cloud itself do not count. The services take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import openstack
from keystoneauth1.adapter import Adapter

from bench.measure import cpu_seconds, pss_mb
from support import templates
from support.templates import define


def template(servers: int) -> dict[str, Any]:
    """Return a template with a network, and servers with one port each."""
    net = {"get_resource": "net"}
    server = define("OS::Nova::Server", image="tiny", flavor="m1.tiny", networks=[{"network": net}])
    return templates.template(
        {
            "net": {"type": "OS::Neutron::Net"},
            "subnet": define("OS::Neutron::Subnet", network=net, cidr="10.99.0.0/24"),
            **{f"server{number}": server | {"depends_on": "subnet"} for number in range(servers)},
        }
    )


def measure(adapter: Adapter, pids: list[int], servers: int) -> dict[str, float]:
    """Create and delete one stack. Returns seconds of wall and CPU time."""
    body = {"stack_name": f"bench-{time.time_ns()}", "template": template(servers), "timeout_mins": 30}
    figures = {}
    cpu, began = cpu_seconds(pids), time.monotonic()
    stack = adapter.post("/stacks", json=body).json()["stack"]
    path = f"/stacks/{body['stack_name']}/{stack['id']}"
    await_status(adapter, path, "CREATE_COMPLETE")
    figures["create_s"], figures["create_cpu_s"] = time.monotonic() - began, cpu_seconds(pids) - cpu
    cpu, began = cpu_seconds(pids), time.monotonic()
    adapter.delete(path)
    await_status(adapter, path, "DELETE_COMPLETE")
    figures["delete_s"], figures["delete_cpu_s"] = time.monotonic() - began, cpu_seconds(pids) - cpu
    return figures


def await_status(adapter: Adapter, path: str, status: str) -> None:
    """Wait until the stack has the status. Raises RuntimeError if the operation fails."""
    while True:
        answer = adapter.get(path, raise_exc=False)
        stack = answer.json().get("stack") or {"stack_status": "DELETE_COMPLETE"}
        if stack["stack_status"] == status:
            return
        if stack["stack_status"].endswith("_FAILED"):
            raise RuntimeError(stack["stack_status_reason"])
        time.sleep(0.5)


def main() -> None:
    """Measure all services in turns, and print the medians."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--cloud", required=True, help="entry of clouds.yaml of the project")
    arguments.add_argument("--servers", type=int, default=10)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("service", nargs="+", metavar="LABEL=TYPE:PID,…")
    options = arguments.parse_args()
    session = openstack.config.get_cloud_region(cloud=options.cloud).get_session()
    services = {}
    for text in options.service:
        label, _, target = text.partition("=")
        kind, _, pids = target.partition(":")
        adapter = Adapter(session, service_type=kind, interface="public", raise_exc=True)
        services[label] = (adapter, [int(pid) for pid in pids.split(",")])
    figures: dict[str, list[dict[str, float]]] = {label: [] for label in services}
    for _ in range(options.rounds):
        for label, (adapter, pids) in services.items():
            figures[label].append(measure(adapter, pids, options.servers))
            print(label, json.dumps(figures[label][-1]), flush=True)
    for label, rounds in figures.items():
        medians = {name: round(statistics.median(each[name] for each in rounds), 2) for name in rounds[0]}
        print(label, "median", json.dumps(medians | {"mb": round(pss_mb(services[label][1]), 1)}))


if __name__ == "__main__":
    main()
