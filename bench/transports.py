"""Cost and latency of each transport: unchanged polls, and the time from a result until the dependent's document."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from keystoneclient.contrib.ec2.utils import Ec2Signer

from bench.cases import RESULT, Result, Target, spread, template, until_waiting
from bench.measure import cpu_seconds, load
from support.backends import CLIENT, signature_headers
from support.connection_pool import ConnectionPool
from support.reports import make_report, token_of

#: A request: verb, URL, body, headers.
Ask = tuple[str, str, bytes | None, Mapping[str, str]]


def unchanged_polls(target: Target, transport: str, *, signed: bool = False) -> Result:
    """
    Poll the document of a server with ten deployments. Logins are reused, as by Stoker's agent but not by upstream's.
    """
    made = template(10)
    made["resources"]["server0"]["properties"]["software_config_transport"] = transport
    if signed:
        made["resources"]["server0"]["properties"]["agent"] = "stoker"
    made["outputs"] = {"agent": {"value": {"get_attr": ["server0", "os_collect_config"]}}}
    name, id = target.api.create_stack(made)
    target.api.wait(name, id, "CREATE_COMPLETE")
    try:
        [said] = target.api("GET", f"/stacks/{name}/{id}")["stack"]["outputs"]
        time.sleep(0.5)  # documents in objects and queues are published by then
        ask = (_signed if signed else _ASKING[transport])(target, said["output_value"])
        return load(lambda _: _send(*ask), target.count(2000), 8, target.pids)
    finally:
        target.api.delete_stack(name, id)


def result_to_dependent(target: Target, signal: str) -> Result:
    """Measure the time from sending a result until the server's metadata contains the dependent's config."""
    latencies = []
    for _ in range(target.count(20)):
        made = template(2, signal=signal, chain=True)
        made["outputs"] = {"agent": {"value": {"get_attr": ["server0", "os_collect_config"]}}}
        name, id = target.api.create_stack(made)
        until_waiting(target.api, name, id, "dep0")
        shown = target.api("GET", f"/stacks/{name}/{id}")["stack"]["outputs"]
        # With the server's own login: people see no secrets, and so not where to send the result.
        poll = _heat(target, next(each["output_value"] for each in shown))
        while not (entries := _deployments(poll)):
            time.sleep(0.001)
        ask = _signalling(target, {each["name"]: each["value"] for each in entries[0]["inputs"]})
        began = time.perf_counter()
        _send(*ask)
        while len(_deployments(poll)) < 2:
            time.sleep(0.001)
        latencies.append(time.perf_counter() - began)
        target.api.delete_stack(name, id)
    return spread(latencies)


def _deployments(poll: Ask) -> Any:
    return json.loads(_send(*poll))["metadata"].get("deployments", ())


def reach(target: Target, transport: str) -> Result:
    """Measure the time from a stack's update until each of its servers receives the change by repeated polls."""
    count = target.count(1000)

    def made(word: str) -> dict[str, Any]:
        said = template(count, servers=count)
        for s in range(count):
            said["resources"][f"server{s}"]["properties"]["software_config_transport"] = transport
            said["resources"][f"dep{s}"]["properties"]["input_values"] = {"foo": word}
        agents = {f"{s}": {"value": {"get_attr": [f"server{s}", "os_collect_config"]}} for s in range(count)}
        return {**said, "outputs": agents}

    name, id = target.api.create_stack(made("before"))
    target.api.wait(name, id, "CREATE_COMPLETE")
    outputs = target.api("GET", f"/stacks/{name}/{id}")["stack"]["outputs"]
    asks = [_ASKING[transport](target, each["output_value"]) for each in outputs]
    # Request the document itself.
    asks = [("GET" if verb == "HEAD" else verb, *rest) for verb, *rest in asks]
    cpu, began = cpu_seconds(target.pids), time.perf_counter()
    target.api("PUT", f"/stacks/{name}/{id}", {"template": made("afterwards")})
    updated = time.perf_counter() - began

    def told(ask: Ask) -> float:
        while b"afterwards" not in _send(*ask):
            time.sleep(0.05)
        return time.perf_counter() - began

    with ThreadPoolExecutor(8) as pool:
        all_told = max(pool.map(told, asks))
    used = cpu_seconds(target.pids) - cpu
    target.api.delete_stack(name, id)
    return {"servers": count, "updated_s": round(updated, 2), "all_told_s": round(all_told, 2), "cpu_s": round(used, 2)}


def _cfn(_target: Target, agent: Mapping[str, Any]) -> Ask:
    said = agent["cfn"]
    url = urlsplit(said["metadata_url"])
    params = {
        "Action": "DescribeStackResource",
        "StackName": said["stack_name"],
        "LogicalResourceId": said["path"].partition(".")[0],
        "AWSAccessKeyId": said["access_key_id"],
        "SignatureVersion": "2",
    }
    signed = {"verb": "GET", "host": url.netloc, "path": url.path, "params": params}
    params["Signature"] = Ec2Signer(said["secret_access_key"]).generate(signed)
    return "GET", f"{said['metadata_url']}?{urlencode(params)}", None, {"Content-Type": "application/json"}


def _heat(target: Target, agent: Mapping[str, Any]) -> Ask:
    said = agent["heat"]
    path = f"stacks/{said['stack_id']}/resources/{said['resource_name']}/metadata"
    # Heat with Keystone has a separate project for the users of servers.
    root = target.api.base.geturl().rstrip("/").rpartition("/")[0]
    return "GET", f"{root}/{said['project_id']}/{path}", None, token_of(said)


def _request(_target: Target, agent: Mapping[str, Any]) -> Ask:
    return "HEAD", agent["request"]["metadata_url"], None, {}


def _zaqar(target: Target, agent: Mapping[str, Any]) -> Ask:
    said = agent["zaqar"]
    root = f"{target.api.base.scheme}://{target.api.base.netloc}"
    headers = {**token_of(said), **CLIENT}
    return "DELETE", f"{root}/messaging/v2/queues/{said['queue_id']}/messages?pop=1", None, headers


def _signed(_target: Target, agent: Mapping[str, Any]) -> Ask:
    """Return the poll of Stoker's agent after it has read all messages."""
    said = agent["zaqar"]
    headers = signature_headers(said)
    url = f"{said['messaging_url']}/v2/queues/{said['queue_id']}/messages?echo=true&limit=20"
    [link] = json.loads(_send("GET", url, None, headers))["links"]
    marker = parse_qs(urlsplit(link["href"]).query)["marker"][0]
    return "GET", f"{url}&marker={marker}", None, headers


def _signalling(target: Target, inputs: Mapping[str, Any]) -> Ask:
    url = f"{target.api.base.scheme}://{target.api.base.netloc}"
    verb, url, body, headers = make_report(url, inputs, RESULT)
    return verb, url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}


@cache
def _connections(host: str, port: int) -> ConnectionPool:
    return ConnectionPool(host, port)


def _send(verb: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    """Send a request on a connection that is kept. Return the body of the answer, which must be no error."""
    parts = urlsplit(url)
    pool = _connections(parts.hostname or "", parts.port or 80)
    status, _, raw = pool.request(verb, f"{parts.path}?{parts.query}".rstrip("?"), body, headers, 60)
    if status >= 400:
        raise RuntimeError(f"{verb} {parts.path}: {status} {raw[:300]!r}")
    return raw


_ASKING: Mapping[str, Callable[[Target, Mapping[str, Any]], Ask]] = {
    "POLL_SERVER_CFN": _cfn,
    "POLL_SERVER_HEAT": _heat,
    "POLL_TEMP_URL": _request,
    "ZAQAR_MESSAGE": _zaqar,
}
#: Cases that Heat supports without Swift and Zaqar.
COMMON: dict[str, Callable[[Target], Result]] = {
    "unchanged poll, POLL_SERVER_CFN": lambda t: unchanged_polls(t, "POLL_SERVER_CFN"),
    "unchanged poll, POLL_SERVER_HEAT": lambda t: unchanged_polls(t, "POLL_SERVER_HEAT"),
    "result to dependent, CFN_SIGNAL": lambda t: result_to_dependent(t, "CFN_SIGNAL"),
}
OURS: dict[str, Callable[[Target], Result]] = {
    "unchanged poll, POLL_TEMP_URL": lambda t: unchanged_polls(t, "POLL_TEMP_URL"),
    "unchanged poll, ZAQAR_MESSAGE": lambda t: unchanged_polls(t, "ZAQAR_MESSAGE"),
    "unchanged poll, ZAQAR_MESSAGE by a signed URL": lambda t: unchanged_polls(t, "ZAQAR_MESSAGE", signed=True),
    "result to dependent, HEAT_SIGNAL": lambda t: result_to_dependent(t, "HEAT_SIGNAL"),
    "result to dependent, TEMP_URL_SIGNAL": lambda t: result_to_dependent(t, "TEMP_URL_SIGNAL"),
    **{f"change reaches 1,000 servers, {name}": lambda t, name=name: reach(t, name) for name in _ASKING},
    "result to dependent, ZAQAR_SIGNAL": lambda t: result_to_dependent(t, "ZAQAR_SIGNAL"),
}
