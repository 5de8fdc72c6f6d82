"""A small service with Heat's manners, on a real socket: identity, stacks, configs, deployments, servers, in memory.

What happens to stacks and deployments is written down beforehand: a stack shows one frame of its life at each look, a
deployment one page of its log.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from client import little_extensions
from client.little_answers import TIME, Answer, deployment_of, new_id
from client.little_extensions import Extensions
from client.little_story import DROP, Raw, Story, Wait, numbered

SOURCE = Path(__file__).parents[2] / "client" / "src"
PROJECT = "p" * 32
TOKEN = "a-token"
PASSWORD = "right"
ACCEPTED = 2020  # 202 with an answer: Heat's own calls give a page that means nothing


@dataclass
class Frame:
    """One look at a stack."""

    status: str
    reason: str = ""
    resources: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Script:
    """What a deployment will do: pages of log chunks, then an end. A chunk may say where it is in its stream."""

    pages: list[list[tuple[str, str] | tuple[str, str, int]]] = field(default_factory=list)
    status: str = "COMPLETE"
    reason: str = "Outputs received"
    outputs: dict[str, Any] = field(default_factory=dict)


def resource(name: str, status: str, reason: str = "", **more: Any) -> dict[str, Any]:
    return {
        "resource_name": name,
        "resource_type": "OS::Heat::SoftwareDeployment",
        "resource_status": status,
        "resource_status_reason": reason,
        "physical_resource_id": "",
        "creation_time": TIME,
        "updated_time": None,
        **more,
    }


class LittleHeat(Extensions):
    """The state, and the calls on it."""

    def __init__(self) -> None:
        super().__init__()
        self.stacks: dict[str, dict[str, Any]] = {}
        self.life: list[Frame] = [Frame("CREATE_COMPLETE")]
        self.outputs: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.configs: dict[str, dict[str, Any]] = {}
        #: What a new deployment gives as its reason.
        self.first_reason = "Waiting for the agent"
        self.deployments: dict[str, dict[str, Any]] = {}
        #: Whether it names what deployments belong to, as Stoker; Heat does not.
        self.knows_names = True
        self.servers: dict[str, dict[str, Any]] = {}
        self.script = Script()
        self.triggers: dict[str, dict[str, Any]] = {}
        self.story: Story = []
        self.upgrades: dict[str, dict[str, Any]] = {}
        self.schedules: dict[str, dict[str, Any]] = {}
        self.runs: list[dict[str, Any]] = []
        self.decisions: list[dict[str, Any]] = []
        self.last_ids: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.bodies: list[tuple[str, str, Any]] = []
        self.fail_with: tuple[int, bytes, str] | None = None

    # identity

    def versions(self, **_: Any) -> Any:
        link = [{"rel": "self", "href": f"{self.url}/identity/v3/"}]
        return {"version": {"id": "v3.14", "status": "stable", "links": link}}

    def login(self, body: Any, **_: Any) -> Any:
        user = body["auth"]["identity"]["password"]["user"]
        if user["password"] != PASSWORD:
            raise Answer(401, "The request you have made requires authentication.")
        endpoint = {"interface": "public", "region": "RegionOne", "region_id": "RegionOne", "id": "1"}
        catalog = [
            {"type": kind, "name": kind, "id": kind, "endpoints": [{**endpoint, "url": f"{self.url}{path}"}]}
            for kind, path in (("identity", "/identity/v3"), ("orchestration", f"/v1/{PROJECT}"))
        ]
        project = {"id": PROJECT, "name": "default", "domain": {"id": "default", "name": "Default"}}
        return {
            "token": {
                "methods": ["password"],
                "user": {"id": "u", "name": "admin", "domain": project["domain"]},
                "project": project,
                "roles": [{"id": "r", "name": "admin"}],
                "catalog": catalog,
                "issued_at": "2031-05-06T07:08:09.000000Z",
                "expires_at": "2131-05-06T07:08:09.000000Z",
            }
        }

    # stacks

    def add_stack(self, name: str, **more: Any) -> dict[str, Any]:
        stack = {"id": new_id(), "stack_name": name, "creation_time": TIME, "updated_time": None, **more}
        self.stacks[stack["id"]] = stack
        return stack

    def list_stacks(self, **_: Any) -> Any:
        return {"stacks": [self._shown(stack) for stack in self.stacks.values()]}

    def create_stack(self, body: Any, **_: Any) -> Any:
        if any(stack["stack_name"] == body["stack_name"] for stack in self.stacks.values()):
            raise Answer(409, f"The Stack ({body['stack_name']}) already exists.")
        stack = self.add_stack(body["stack_name"])
        self._begin(stack, "CREATE")
        return {"stack": {"id": stack["id"], "links": []}}

    def show_stack(self, id_: str, **_: Any) -> Any:
        stack = self._stack(id_)
        return {"stack": {**self._shown(stack), "outputs": self.outputs, "parameters": {"OS::stack_name": "x"}}}

    def list_resources(self, id_: str, **_: Any) -> Any:
        self._stack(id_)
        return {"resources": self.life[0].resources}

    def list_events(self, id_: str, query: dict[str, str], **_: Any) -> Any:
        stack = self._stack(id_)
        if "recorded" in stack:
            if len(self.life) > 1 and "marker" in query and query.get("sort_dir") == "asc":
                self.life.pop(0)
            self._record(stack)
        events = self.events if query.get("sort_dir") == "asc" else self.events[::-1]
        ids = [event["id"] for event in events]
        start = ids.index(query["marker"]) + 1 if "marker" in query else 0
        return {"events": events[start : start + int(query.get("limit", 2))]}

    def _begin(self, stack: dict[str, Any], action: str) -> None:
        """The first event of an operation, which goes through the frames from now on."""
        stack["recorded"] = {}
        first = self.life[0]
        reason = first.reason if first.status.endswith("_IN_PROGRESS") else ""
        self._event(stack, stack["stack_name"], f"{action}_IN_PROGRESS", reason, stack["id"])

    def _record(self, stack: dict[str, Any]) -> None:
        """An event for what is new in the present frame."""
        frame = self.life[0]
        for each in frame.resources:
            if not each["resource_status"].startswith("INIT_"):
                name, reason = each["resource_name"], each["resource_status_reason"]
                self._event(stack, name, each["resource_status"], reason, each["physical_resource_id"])
        self._event(stack, stack["stack_name"], frame.status, frame.reason, stack["id"])

    def _event(self, stack: dict[str, Any], name: str, status: str, reason: str, physical_id: str) -> None:
        if stack["recorded"].get(name) != status:
            stack["recorded"][name] = status
            event = {"resource_name": name, "resource_status": status, "resource_status_reason": reason}
            self.events.append({"id": new_id(), "event_time": TIME, "physical_resource_id": physical_id, **event})

    def show_output(self, id_: str, key: str, **_: Any) -> Any:
        self._stack(id_)
        for output in self.outputs:
            if output["output_key"] == key:
                return {"output": output}
        raise Answer(404, f"Specified output key {key} not found.")

    def template(self, id_: str, **_: Any) -> Any:
        self._stack(id_)
        return {"heat_template_version": "2021-04-16", "resources": {}}

    def change_stack(self, id_: str, **_: Any) -> Any:
        self._begin(self._stack(id_), "UPDATE")

    def delete_stack(self, id_: str, **_: Any) -> Any:
        stack = self._stack(id_)
        self._begin(stack, "DELETE")
        if len(self.life) == 1:
            del self.stacks[stack["id"]]

    def _stack(self, id_: str) -> dict[str, Any]:
        if id_ not in self.stacks:
            raise Answer(404, f"The Stack ({id_}) could not be found.")
        return self.stacks[id_]

    def _shown(self, stack: dict[str, Any]) -> dict[str, Any]:
        frame = self.life[0]
        state = {"stack_status": frame.status, "stack_status_reason": frame.reason}
        return {key: value for key, value in stack.items() if key != "recorded"} | state

    def canonical(self, ref: str) -> str:
        for stack in self.stacks.values():
            if ref in (stack["id"], stack["stack_name"]):
                return f"{stack['stack_name']}/{stack['id']}"
        raise Answer(404, f"The Stack ({ref}) could not be found.")

    # configs and deployments

    def list_configs(self, query: dict[str, str], **_: Any) -> Any:
        keys = ("id", "name", "group", "creation_time")
        found = [
            config
            for config in self.configs.values()
            if query.get("derived") != "false"
            or not any(entry["name"] == "deploy_server_id" for entry in config.get("inputs", []))
        ]
        return {"software_configs": [{key: config[key] for key in keys} for config in found]}

    def create_config(self, body: Any, **_: Any) -> Any:
        config = {"id": new_id(), "creation_time": TIME, **body}
        self.configs[config["id"]] = config
        return {"software_config": config}

    def show_config(self, id_: str, **_: Any) -> Any:
        return {"software_config": self._get(self.configs, id_, "Software Config")}

    def delete_config(self, id_: str, **_: Any) -> Any:
        self._get(self.configs, id_, "Software Config")
        del self.configs[id_]

    def list_deployments(self, query: dict[str, str], **_: Any) -> Any:
        wanted = query.get("server_id")
        found = [d for d in self.deployments.values() if wanted in (None, d["server_id"])]
        return {"software_deployments": [self._with_names(d, query) for d in found]}

    def create_deployment(self, body: Any, **_: Any) -> Any:
        source = self.configs[body["config_id"]]
        inputs = [{"name": "deploy_server_id", "value": body["server_id"]}]
        derived = {**source, "id": new_id(), "inputs": inputs}
        self.configs[derived["id"]] = derived
        deployment = {
            "id": new_id(),
            "config_id": derived["id"],
            "server_id": body["server_id"],
            "action": body.get("action"),
            "status": "IN_PROGRESS",
            "status_reason": self.first_reason,
            "input_values": body.get("input_values"),
            "output_values": {},
            "creation_time": TIME,
        }
        self.deployments[deployment["id"]] = deployment
        return {"software_deployment": deployment}

    def show_deployment(self, id_: str, query: dict[str, str], **_: Any) -> Any:
        deployment = self._get(self.deployments, id_, "Software Deployment")
        return {"software_deployment": self._with_names(deployment, query)}

    def _with_names(self, deployment: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
        if "names" not in query or not self.knows_names:
            return deployment
        server = self.servers.get(deployment.get("server_id"))
        config = self.configs.get(deployment.get("config_id"))
        return {
            **deployment,
            "server_name": server and server["name"],
            "stack_name": None,
            "resource_name": None,
            "config_name": config and config["name"],
            "requested_by": "demo",
        }

    def delete_deployment(self, id_: str, **_: Any) -> Any:
        self._get(self.deployments, id_, "Software Deployment")
        del self.deployments[id_]

    def logs(self, id_: str, query: dict[str, str], **_: Any) -> Any:
        deployment = self._get(self.deployments, id_, "Software Deployment")
        after = int(query.get("after", 0))
        page = self.script.pages[after] if after < len(self.script.pages) else []
        if deployment.get("log") is not None:
            page = [(chunk["stream"], chunk["data"]) for chunk in deployment["log"][after : after + 1]]
        elif "wait" in query and after + 1 >= len(self.script.pages):
            ended = {"status": self.script.status, "status_reason": self.script.reason}
            deployment.update(ended, output_values=self.script.outputs)
        logs = [_chunk(after + 1, *chunk) for chunk in page]
        state = {"status": deployment["status"], "status_reason": deployment["status_reason"]}
        return {"logs": logs, "next": after + bool(page), **state, "progress": None}

    def list_runs(self, id_: str, **_: Any) -> Any:
        self._get(self.deployments, id_, "Software Deployment")
        return {"runs": self.runs}

    def cancel_deployment(self, id_: str, **_: Any) -> Any:
        deployment = self._get(self.deployments, id_, "Software Deployment")
        if deployment["status"] != "IN_PROGRESS":
            raise Answer(409, f"The deployment ({id_}) is not in progress.")
        return {"software_deployment": deployment}

    def retry_deployment(self, id_: str, **_: Any) -> Any:
        deployment = self._get(self.deployments, id_, "Software Deployment")
        if deployment["status"] != "FAILED":
            raise Answer(409, f"The deployment ({id_}) did not fail.")
        deployment.update(status="IN_PROGRESS")
        return {"software_deployment": deployment}

    # triggers, schedules, audit

    def add_trigger(self, *servers: str, **more: Any) -> dict[str, Any]:
        """One that runs on ``servers``, each with a deployment that has written nothing."""
        targets = []
        for position, name in enumerate(servers):
            server = next((s for s in self.servers.values() if s["name"] == name), None) or self.add_server(name)
            id_ = deployment_of(name)
            self.deployments[id_] = {"id": id_, "status": "IN_PROGRESS", "status_reason": "", "log": []}
            named = {"server_id": server["id"], "server_name": name, "deployment_id": id_, "name": f"{name} BACKUP"}
            targets.append({"position": position, "status": "QUEUED", "status_reason": None, "run": None, **named})
        trigger = {
            "id": new_id(), "name": "database BACKUP", "action": "BACKUP", "status": "IN_PROGRESS",
            "status_reason": None, "total": len(servers), "queued": len(servers), "running": 0, "complete": 0,
            "failed": 0, "cancelled": 0, "requested_by": "admin", "creation_time": TIME, "end_time": None,
            "targets": targets, **more,
        }  # fmt: skip
        self.triggers[trigger["id"]] = trigger
        return trigger

    def list_triggers(self, query: dict[str, str], **_: Any) -> Any:
        found = [t for t in reversed(self.triggers.values()) if query.get("status") in (None, t["status"])]
        return {"software_triggers": [_without(each, "targets") for each in _page(found, query)]}

    def create_trigger(self, body: Any, **_: Any) -> Any:
        if body.get("resource") == "unknown":
            raise Answer(404, "The Resource (unknown) could not be found.")
        trigger = self.add_trigger(*body.get("servers", ["db1", "db2"]), source=body)
        return {"software_trigger": _without(trigger, "targets")}

    def show_trigger(self, id_: str, **_: Any) -> Any:
        return {"software_trigger": self._get(self.triggers, id_, "Software Trigger")}

    def trigger_events(self, id_: str, last_id: str, **_: Any) -> Any:
        self._get(self.triggers, id_, "Software Trigger")
        return self._told(last_id, self.triggers[id_])

    def _told(self, last_id: str, trigger: dict[str, Any] | None) -> Iterator[bytes]:
        """The story, from where it was left; a drop ends one stream, and the next one goes on after it."""
        self.last_ids.append(last_id)
        yield b"retry: 10\r\n:\r\n\r\n"
        while self.story:
            step = self.story.pop(0)
            if step is DROP:
                return
            if isinstance(step, Wait):
                step.reached.set()
                assert step.go.wait(60)
            elif isinstance(step, Raw):
                yield step.content
            else:
                if step.name == "target" and trigger is not None:
                    trigger["targets"][step.data["position"]].update(step.data)
                elif step.name == "trigger" and trigger is not None:
                    trigger.update(step.data)
                data = step.data
                if step.name == "target" and trigger is not None:
                    data = trigger["targets"][step.data["position"]]
                yield numbered(step.name, data, step.id)

    def logs_or_stream(self, id_: str, query: dict[str, str], last_id: str, wants_stream: bool, **_: Any) -> Any:
        if wants_stream and self.story:
            self._get(self.deployments, id_, "Software Deployment")
            return self._told(last_id, None)
        return self.logs(id_, query)

    def cancel_trigger(self, id_: str, **_: Any) -> Any:
        trigger = self._get(self.triggers, id_, "Software Trigger")
        if trigger["status"] != "IN_PROGRESS":
            raise Answer(409, f"The trigger ({id_}) is over.")
        return {"software_trigger": trigger}

    def retry_trigger(self, id_: str, **_: Any) -> Any:
        self._get(self.triggers, id_, "Software Trigger")
        return {"software_trigger": _without(self.add_trigger("db1"), "targets")}

    def delete_trigger(self, id_: str, **_: Any) -> Any:
        if self._get(self.triggers, id_, "Software Trigger")["status"] == "IN_PROGRESS":
            raise Answer(409, f"The trigger ({id_}) is under way: cancel it first.")
        del self.triggers[id_]

    def list_schedules(self, **_: Any) -> Any:
        return {"software_schedules": list(self.schedules.values())}

    def create_schedule(self, body: Any, **_: Any) -> Any:
        schedule = {"id": new_id(), "name": None, **body["software_schedule"], "next_time": TIME}
        self.schedules[schedule["id"]] = schedule
        return {"software_schedule": schedule}

    def show_schedule(self, id_: str, **_: Any) -> Any:
        return {"software_schedule": self._get(self.schedules, id_, "Software Schedule")}

    def change_schedule(self, id_: str, body: Any, **_: Any) -> Any:
        schedule = self._get(self.schedules, id_, "Software Schedule")
        schedule.update(body["software_schedule"])
        return {"software_schedule": schedule}

    def delete_schedule(self, id_: str, **_: Any) -> Any:
        self._get(self.schedules, id_, "Software Schedule")
        del self.schedules[id_]

    def audit(self, query: dict[str, str], **_: Any) -> Any:
        found = [each for each in self.decisions if query.get("server") in (None, each.get("server_name"))]
        return {"audit": _page(found, query)}

    # servers

    def add_server(self, name: str, status: str = "ONLINE") -> dict[str, Any]:
        server = {"id": new_id(), "name": name, "kind": "enrolled", "status": status, "last_seen": TIME, "hooks": []}
        self.servers[server["id"]] = server
        return server

    def list_servers(self, query: dict[str, str], **_: Any) -> Any:
        texts = query["selector"].split(" and ") if "selector" in query else ()
        wanted = {tuple(each.split("=")) for each in texts}
        found = [s for s in self.servers.values() if wanted <= set((s.get("labels") or {}).items())]
        ids = [server["id"] for server in found]  # an unknown marker is ignored
        start = ids.index(query["marker"]) + 1 if query.get("marker") in ids else 0
        return {"servers": found[start:][: int(query.get("limit", len(found)))]}

    def change_server(self, id_: str, body: Any, **_: Any) -> Any:
        server = self.show_server(id_)["server"]
        labels = {**(server.get("labels") or {}), **body.get("labels", {})}
        server["labels"] = {name: value for name, value in labels.items() if value is not None}
        if "policy" in body:
            own = body["policy"] is not None
            server.update(policy=body["policy"] or "PROJECT", policy_source="server" if own else "site")
        return {"server": server}

    def show_server(self, id_: str, **_: Any) -> Any:
        for server in self.servers.values():
            if id_ in (server["id"], server["name"]):
                return {"server": server}
        raise Answer(404, f"The Server ({id_}) could not be found.")

    def enroll(self, body: Any, **_: Any) -> Any:
        same = [server for server in self.servers.values() if server["name"] == body["name"]]
        if same and not body.get("again"):
            raise Answer(409, f"A server named {body['name']} exists.")
        if body.get("again") and not same:
            raise Answer(404, f"The Server ({body['name']}) could not be found.")
        command = "echo secret | python3 -c 'install'"
        warning = "Nobody can reach it"
        enrollment = {"token": "secret", "expires_at": TIME, "command": command, "url": self.url, "warning": warning}
        return {"server": same[0] if same else self.add_server(body["name"], "ENROLLING"), "enrollment": enrollment}

    def approve_server(self, id_: str, **_: Any) -> Any:
        self._pending(id_)["status"] = "ENROLLING"
        return self.show_server(id_)

    def reject_server(self, id_: str, **_: Any) -> Any:
        del self.servers[self._pending(id_)["id"]]

    def _pending(self, id_: str) -> dict[str, Any]:
        server: dict[str, Any] = self.show_server(id_)["server"]
        if server["status"] != "PENDING_APPROVAL":
            raise Answer(409, f"Server {server['name']!r} does not wait for approval.")
        return server

    def upgrade_agents(self, body: Any, **_: Any) -> Any:
        chosen = [self.show_server(ref)["server"] for ref in body["servers"]]
        for server in chosen:
            upgrade = {"server_id": server["id"], "server_name": server["name"], "status": "PENDING", "version": "2"}
            self.upgrades[server["id"]] = upgrade
        return {"agent_upgrades": [self.upgrades[server["id"]] for server in chosen]}

    def list_upgrades(self, **_: Any) -> Any:
        return {"agent_upgrades": list(self.upgrades.values())}

    def cancel_upgrade(self, id_: str, **_: Any) -> Any:
        server = self.show_server(id_)["server"]
        if self.upgrades.pop(server["id"], None) is None:
            raise Answer(409, f"Server {server['name']!r} has no upgrade that can be cancelled.")

    def delete_server(self, id_: str, **_: Any) -> Any:
        del self.servers[self.show_server(id_)["server"]["id"]]

    def _get(self, kept: dict[str, dict[str, Any]], id_: str, noun: str) -> dict[str, Any]:
        if id_ not in kept:
            raise Answer(404, f"The {noun} ({id_}) could not be found.")
        return kept[id_]


def _without(thing: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in thing.items() if key != name}


def _page(found: list[dict[str, Any]], query: dict[str, str]) -> list[dict[str, Any]]:
    """As much as is asked for."""
    ids = [str(each["id"]) for each in found]
    start = ids.index(query["marker"]) + 1 if "marker" in query else 0
    return found[start:][: int(query.get("limit", len(found)))]


def _chunk(seq: int, stream: str, data: str, offset: int | None = None) -> dict[str, Any]:
    where = {} if offset is None else {"offset": offset, "size": len(data.encode())}
    return {"seq": seq, "stream": stream, "data": data, "time": TIME, **where}


Call = Callable[..., Any]
_TRIGGER, _SCHEDULE = "/software_triggers/(?P<id_>[^/]+)", "/software_schedules/(?P<id_>[^/]+)"
ROUTES: list[tuple[str, str, Call, int]] = [
    ("GET", "/stacks", LittleHeat.list_stacks, 200),
    ("POST", "/stacks", LittleHeat.create_stack, 201),
    ("GET", "/stacks/[^/]+/(?P<id_>[^/]+)", LittleHeat.show_stack, 200),
    ("PUT", "/stacks/[^/]+/(?P<id_>[^/]+)", LittleHeat.change_stack, 202),
    ("PATCH", "/stacks/[^/]+/(?P<id_>[^/]+)", LittleHeat.change_stack, 202),
    ("DELETE", "/stacks/[^/]+/(?P<id_>[^/]+)", LittleHeat.delete_stack, 204),
    ("GET", "/stacks/[^/]+/(?P<id_>[^/]+)/resources", LittleHeat.list_resources, 200),
    ("GET", "/stacks/[^/]+/(?P<id_>[^/]+)/events", LittleHeat.list_events, 200),
    ("GET", "/stacks/[^/]+/(?P<id_>[^/]+)/template", LittleHeat.template, 200),
    ("GET", "/stacks/[^/]+/(?P<id_>[^/]+)/outputs/(?P<key>[^/]+)", LittleHeat.show_output, 200),
    ("GET", "/software_configs", LittleHeat.list_configs, 200),
    ("POST", "/software_configs", LittleHeat.create_config, 200),
    ("GET", "/software_configs/(?P<id_>[^/]+)", LittleHeat.show_config, 200),
    ("DELETE", "/software_configs/(?P<id_>[^/]+)", LittleHeat.delete_config, 204),
    ("GET", "/software_deployments", LittleHeat.list_deployments, 200),
    ("POST", "/software_deployments", LittleHeat.create_deployment, 200),
    ("GET", "/software_deployments/(?P<id_>[^/]+)", LittleHeat.show_deployment, 200),
    ("DELETE", "/software_deployments/(?P<id_>[^/]+)", LittleHeat.delete_deployment, 204),
    ("GET", "/software_deployments/(?P<id_>[^/]+)/logs", LittleHeat.logs_or_stream, 200),
    ("GET", "/software_deployments/(?P<id_>[^/]+)/runs", LittleHeat.list_runs, 200),
    ("POST", "/software_deployments/(?P<id_>[^/]+)/cancel", LittleHeat.cancel_deployment, ACCEPTED),
    ("POST", "/software_deployments/(?P<id_>[^/]+)/retry", LittleHeat.retry_deployment, ACCEPTED),
    ("GET", "/software_triggers", LittleHeat.list_triggers, 200),
    ("POST", "/software_triggers", LittleHeat.create_trigger, 201),
    ("GET", _TRIGGER, LittleHeat.show_trigger, 200),
    ("DELETE", _TRIGGER, LittleHeat.delete_trigger, 204),
    ("GET", f"{_TRIGGER}/events", LittleHeat.trigger_events, 200),
    ("POST", f"{_TRIGGER}/cancel", LittleHeat.cancel_trigger, ACCEPTED),
    ("POST", f"{_TRIGGER}/retry", LittleHeat.retry_trigger, 201),
    ("GET", "/software_schedules", LittleHeat.list_schedules, 200),
    ("POST", "/software_schedules", LittleHeat.create_schedule, 201),
    ("GET", _SCHEDULE, LittleHeat.show_schedule, 200),
    ("PATCH", _SCHEDULE, LittleHeat.change_schedule, 200),
    ("DELETE", _SCHEDULE, LittleHeat.delete_schedule, 204),
    ("GET", "/audit", LittleHeat.audit, 200),
    ("GET", "/servers", LittleHeat.list_servers, 200),
    ("POST", "/servers", LittleHeat.enroll, 201),
    ("GET", "/servers/(?P<id_>[^/]+)", LittleHeat.show_server, 200),
    ("PATCH", "/servers/(?P<id_>[^/]+)", LittleHeat.change_server, 200),
    ("DELETE", "/servers/(?P<id_>[^/]+)", LittleHeat.delete_server, 204),
    ("POST", "/servers/(?P<id_>[^/]+)/approve", LittleHeat.approve_server, 200),
    ("POST", "/servers/(?P<id_>[^/]+)/reject", LittleHeat.reject_server, 204),
    ("POST", "/agent_upgrades", LittleHeat.upgrade_agents, ACCEPTED),
    ("GET", "/agent_upgrades", LittleHeat.list_upgrades, 200),
    ("DELETE", "/agent_upgrades/(?P<id_>[^/]+)", LittleHeat.cancel_upgrade, 204),
    *little_extensions.ROUTES,
]
# Heat redirects a stack's name or id, also with one of these behind it, to the canonical address.
REDIRECTED = re.compile(r"/stacks/(?P<ref>[^/]+)(?P<rest>/(resources|events|template))?")


class Handler(BaseHTTPRequestHandler):
    """HTTP around the state of its server."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets, and a client delays its acknowledgment
    server: "Server"

    def handle_one(self) -> None:
        heat = self.server.heat
        parts = urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(raw) if raw else None
        path = parts.path.removeprefix(f"/v1/{PROJECT}")
        heat.calls.append((self.command, path + (f"?{parts.query}" if parts.query else "")))
        if body is not None:
            heat.bodies.append((self.command, path, body))
        try:
            self._answer(heat, path, parts.query, body)
        except Answer as error:
            wanted = {"code": error.status, "title": "x", "explanation": "x"}
            self._send(error.status, {**wanted, "error": {"type": "X", "traceback": None, "message": error.message}})

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

    def _answer(self, heat: LittleHeat, path: str, query: str, body: Any) -> None:
        if path.startswith("/identity/v3"):
            self._identity(heat, path, body)
        elif not self.path.startswith(f"/v1/{PROJECT}/"):
            raise Answer(404, "The resource could not be found.")
        elif heat.fail_with:
            status, content, kind = heat.fail_with
            self._send_raw(status, content, kind)
        elif self.headers.get("X-Auth-Token") != TOKEN:
            raise Answer(401, "Authentication required")
        else:
            self._orchestration(heat, path, query, body)

    def _identity(self, heat: LittleHeat, path: str, body: Any) -> None:
        if path.endswith("/auth/tokens"):
            self._send(201, heat.login(body), {"X-Subject-Token": TOKEN})
        else:
            self._send(200, heat.versions())

    def _orchestration(self, heat: LittleHeat, path: str, query: str, body: Any) -> None:
        for method, pattern, call, status in ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == self.command and not REDIRECTED.fullmatch(path):
                several = parse_qs(query)
                values = {key: value[0] for key, value in several.items()}
                more = {
                    "several": several,
                    "last_id": self.headers.get("Last-Event-ID") or "",
                    "wants_stream": "text/event-stream" in self.headers.get("Accept", ""),
                }
                said = call(heat, body=body, query=values, **more, **match.groupdict())
                if isinstance(said, Iterator):
                    self._stream(said)
                else:
                    self._send(status, said)
                return
        if match := REDIRECTED.fullmatch(path):
            rest = (match["rest"] or "") + (f"?{query}" if query else "")
            location = f"{heat.url}/v1/{PROJECT}/stacks/{heat.canonical(match['ref'])}{rest}"
            self._send_raw(302, b"<html>moved</html>", "text/html", {"Location": location})
            return
        raise Answer(404, "The resource could not be found.")

    def _stream(self, pieces: Iterator[bytes]) -> None:
        """In HTTP's chunks; the end of a story is the end of the connection, whole or not."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))

    def _send(self, status: int, data: Any, more: dict[str, str] | None = None) -> None:
        if status in (202, 204):
            self._send_raw(status, b"" if status == 204 else b"<html>accepted</html>", "text/html")
        else:
            status = 202 if status == ACCEPTED else status
            self._send_raw(status, json.dumps(data).encode(), "application/json", more)

    def _send_raw(self, status: int, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (more or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Be silent."""


class Server(ThreadingHTTPServer):
    """The socket; it knows the state."""

    def __init__(self, heat: LittleHeat) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.heat = heat
        heat.url = f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


def serving() -> Iterator[LittleHeat]:
    heat = LittleHeat()
    with Server(heat):
        yield heat
