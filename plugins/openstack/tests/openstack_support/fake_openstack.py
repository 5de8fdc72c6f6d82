"""
An OpenStack in memory behind a real HTTP server: Keystone's login, and as much of Nova, Neutron, Cinder and
Glance as tests need.

The representations were recorded from Nova 34 and Neutron 29 (``start-openstack``); tests with the real services are in
``tests/cloud/test_real_cloud.py``. What the double adds is control: answers get lost, services go away, and
servers take as many list calls to start as the test says.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from openstack_support.fake_cinder import FakeCinder
from support.http_stub import Asked, Said, answering

PROJECT, USER = "c" * 32, "7" * 32
IMAGE, FLAVOR, LARGE = str(uuid4()), "1", "2"
_TOKEN = {"X-Subject-Token": "token"}


@dataclass
class FakeOpenStack:
    """The cloud. ``asked`` has all requests to its services as (verb, path)."""

    url: str = ""
    #: Services that answer 503, by the first part of their path.
    away: set[str] = field(default_factory=set)
    #: Called before a request is handled; a result is the answer in place of the usual one.
    intercept: Callable[[Asked], Said | None] = lambda asked: None
    #: The next answers to requests of this verb and path are lost, although the requests are carried out.
    lost: list[tuple[str, str]] = field(default_factory=list)
    #: The next requests of this verb and path get no answer; ``carry_out`` carries them out.
    held: list[tuple[str, str]] = field(default_factory=list)
    postponed: list[Asked] = field(default_factory=list)
    #: List calls that a server takes to start; a server whose name is in ``faults`` fails with this message.
    boot_polls: int = 2
    faults: dict[str, str] = field(default_factory=dict)
    #: Deletions of servers that end in the state ERROR before one succeeds.
    failing_deletions: int = 0
    login_status: int = 201
    servers: dict[str, dict[str, Any]] = field(default_factory=dict)
    items: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    cinder: FakeCinder = field(default_factory=FakeCinder)
    asked: list[tuple[str, str]] = field(default_factory=list)
    polls: dict[str, int] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(2))

    def answer(self, asked: Asked) -> Said:
        service, _, path = asked.path.strip("/").partition("/")
        with self.lock:
            if service == "identity":
                return self._identity(asked)
            self.asked.append((asked.verb, asked.path))
            if service in self.away:
                return Said(503)
            if (said := self.intercept(asked)) is not None:
                return said
            if (asked.verb, asked.path) in self.held:
                self.held.remove((asked.verb, asked.path))
                self.postponed.append(asked)
                return Said(lost=True)
            said = self._carry_out(asked, service, path)
            if (asked.verb, asked.path) in self.lost:
                self.lost.remove((asked.verb, asked.path))
                return Said(lost=True)
            return said

    def _carry_out(self, asked: Asked, service: str, path: str) -> Said:
        handlers = {
            "compute": self._compute,
            "network": self._network,
            "image": self._image,
            "volume": self.cinder.answer,
        }
        return handlers[service](asked, path)

    def carry_out(self) -> None:
        """Carry out the requests that were held."""
        with self.lock:
            while self.postponed:
                asked = self.postponed.pop()
                service, _, path = asked.path.strip("/").partition("/")
                self._carry_out(asked, service, path)

    def count(self, verb: str, path: str) -> int:
        """Return how often a path was requested."""
        return self.asked.count((verb, path))

    def add(self, kind: str, **members: Any) -> dict[str, Any]:
        """Add an object of Neutron or Glance."""
        item = {"id": str(uuid4()), "tags": [], "description": "", "status": "ACTIVE", "name": "", **members}
        self.items.setdefault(kind, {})[item["id"]] = item
        return item

    def _identity(self, asked: Asked) -> Said:
        if asked.path.endswith("/auth/tokens"):
            if self.login_status != 201:
                return Said(
                    self.login_status, {"error": {"message": "The request you have made requires authentication."}}
                )
            kinds = {"compute": "compute/v2.1", "network": "network/v2.0"}
            catalog = [
                {
                    "type": kind,
                    "name": kind,
                    "endpoints": [{"interface": "public", "region_id": "RegionOne", "url": f"{self.url}/{path}"}],
                }
                for kind, path in kinds.items()
            ]
            token = {
                "methods": ["password"],
                "expires_at": "2099-01-01T00:00:00.000000Z",
                "user": {"id": USER, "name": "admin", "domain": {"id": "default", "name": "Default"}},
                "project": {"id": PROJECT, "name": "admin", "domain": {"id": "default", "name": "Default"}},
                "roles": [{"id": "1", "name": "member"}],
                "catalog": catalog,
            }
            return Said(201, {"token": token}, _TOKEN)
        return Said(200, {"version": {"id": "v3.14", "status": "stable", "links": [_link(f"{self.url}/identity/v3")]}})

    def _compute(self, asked: Asked, path: str) -> Said:
        if path in ("v2.1", "v2.1/"):
            version = {"id": "v2.1", "status": "CURRENT", "version": "2.96", "min_version": "2.1"}
            return Said(200, {"version": {**version, "links": [_link(f"{self.url}/compute/v2.1")]}})
        path = path.removeprefix("v2.1")
        if path == "/servers" and asked.verb == "POST":
            return self._boot(asked.json["server"])
        if path == "/servers/detail":
            return Said(200, {"servers": [self._progress(server) for server in list(self.servers.values())]})
        if path == "/flavors/detail":
            return Said(200, {"flavors": [{"id": FLAVOR, "name": "m1.tiny"}, {"id": LARGE, "name": "m1.large"}]})
        if match := re.fullmatch("/flavors/([^/]+)", path):
            return Said(200, {"flavor": {"id": match[1]}}) if match[1] in (FLAVOR, LARGE) else _missing("itemNotFound")
        match = re.fullmatch("/servers/([^/]+)(/.*)?", path)
        if match is None or match[1] not in self.servers:
            return _missing("itemNotFound")
        return self._server(asked, self.servers[match[1]], match[2] or "")

    def _boot(self, wanted: dict[str, Any]) -> Said:
        id = str(uuid4())
        self.servers[id] = {
            "id": id,
            "name": wanted["name"],
            "status": "BUILD",
            "OS-EXT-STS:task_state": "scheduling",
            "flavor": {"id": wanted["flavorRef"]},
            "image": {"id": wanted.get("imageRef")},
            "metadata": wanted["metadata"],
            "tags": [],
            "security_groups": [],
        }
        for entry in wanted["networks"] if isinstance(wanted.get("networks"), list) else ():
            self.items["ports"][entry["port"]]["device_id"] = id
        return Said(202, {"server": {"id": id, "adminPass": "secret-password"}})

    def _progress(self, server: dict[str, Any]) -> dict[str, Any]:
        """Let time pass for a server, at each list call."""
        calls = self.polls[server["id"]] = self.polls.get(server["id"], 0) + 1
        if server["OS-EXT-STS:task_state"] == "deleting" and self.failing_deletions:
            self.failing_deletions -= 1
            fault = {"message": "No network", "code": 500}
            server |= {"status": "ERROR", "OS-EXT-STS:task_state": None, "fault": fault}
        elif server["OS-EXT-STS:task_state"] == "deleting":
            del self.servers[server["id"]]
        elif calls >= self.boot_polls and server["OS-EXT-STS:task_state"] is not None:
            server["OS-EXT-STS:task_state"] = None
            server["status"] = server.pop("next", "ACTIVE")
            if server["name"] in self.faults:
                server |= {"status": "ERROR", "fault": {"message": self.faults[server["name"]], "code": 500}}
        return {**server, "addresses": self._addresses(server)}

    def _addresses(self, server: dict[str, Any]) -> dict[str, Any]:
        ports = [port for port in self.items.get("ports", {}).values() if port.get("device_id") == server["id"]]
        entries = [{"addr": entry["ip_address"], "version": 4} for port in ports for entry in port["fixed_ips"]]
        ids = [port["id"] for port in ports]
        for floating_ip in self.items.get("floatingips", {}).values():
            if floating_ip.get("port_id") in ids:
                entries.append({"addr": floating_ip["floating_ip_address"], "version": 4})
        return {"private": entries} if entries else {}

    def _server(self, asked: Asked, server: dict[str, Any], path: str) -> Said:
        if asked.verb == "GET" and not path:
            return Said(200, {"server": {**server, "addresses": self._addresses(server)}})
        if path == "/os-interface":
            ports = [port for port in self.items["ports"].values() if port["device_id"] == server["id"]]
            return Said(
                200, {"interfaceAttachments": [{**port, "port_id": port["id"], "net_id": "-"} for port in ports]}
            )
        if path.startswith("/os-volume_attachments"):
            return self._attachments(asked, server, path.rpartition("/")[2])
        if asked.verb == "DELETE" and not path:
            server["OS-EXT-STS:task_state"] = "deleting"
            return Said(204)
        if path == "/metadata":
            server["metadata"] = asked.json["metadata"]
            return Said(200, {"metadata": server["metadata"]})
        if path == "" and asked.verb == "PUT":
            server["name"] = asked.json["server"]["name"]
            return Said(200, {"server": server})
        if path == "/action" and "createImage" in asked.json:
            wanted = asked.json["createImage"]
            image = self.add("images", **{"name": wanted["name"], **wanted["metadata"], "status": "queued"})
            return Said(202, headers={"Location": f"{self.url}/image/v2/images/{image['id']}"})
        if path == "/action":
            return self._act(server, asked.json)
        return _missing("itemNotFound")

    def _attachments(self, asked: Asked, server: dict[str, Any], id: str) -> Said:
        if asked.verb == "POST":
            attachment = self.cinder.attach(asked.json["volumeAttachment"]["volumeId"], server["id"])
            return Said(200, {"volumeAttachment": attachment})
        if self.cinder.volumes[id]["status"] not in ("in-use", "attaching"):
            return _missing("itemNotFound")
        if asked.verb == "DELETE":
            self.cinder.detach(id)
        return Said(200, {"volumeAttachment": {"id": id, "volumeId": id, "serverId": server["id"]}})

    def _act(self, server: dict[str, Any], action: dict[str, Any]) -> Said:
        self.polls[server["id"]] = 0
        states = {"suspend": "SUSPENDED", "resume": "ACTIVE", "resize": "VERIFY_RESIZE", "confirmResize": "ACTIVE"}
        (name,) = action
        if name == "resize":
            server["flavor"] = {"id": action["resize"]["flavorRef"]}
        if name == "confirmResize" and server["status"] != "VERIFY_RESIZE":
            return Said(400, {"badRequest": {"code": 400, "message": "Instance has not been resized."}})
        server |= {"OS-EXT-STS:task_state": name, "next": states[name]}
        return Said(202)

    def _image(self, asked: Asked, path: str) -> Said:
        """Answer as Neutron does, without the key around an image."""
        said = self._items(asked, f"v2.0/{path.removeprefix('v2/')}")
        return Said(said.status, said.body.get("image", said.body)) if said.body else said

    def _network(self, asked: Asked, path: str) -> Said:
        if path in ("v2.0", "v2.0/"):
            links = [_link(f"{self.url}/network/v2.0")]
            return Said(200, {"version": {"id": "v2.0", "status": "CURRENT", "links": links}, "resources": []})
        if match := re.fullmatch("v2.0/floatingips/([^/]+)/port_forwardings(?:/([^/]+))?", path):
            return self._forwardings(asked, self.items.get("floatingips", {})[match[1]], match[2])
        return self._items(asked, path)

    def _items(self, asked: Asked, path: str) -> Said:
        match = re.fullmatch("v2.0/([a-z-]+)(/([^/]+))?(/tags|/(?:add|remove)_extraroutes)?", path)
        assert match is not None, path
        kind, id, tags = match[1], match[3], match[4]
        if tags and tags.endswith("_extraroutes"):
            return self._change_routes(self.items[kind][id], asked.json["router"]["routes"], add="add" in tags)
        key = kind.removesuffix("s").replace("-", "_")
        if id is None and asked.verb == "GET":
            filters = {
                name: value for name, value in asked.query.items() if name not in ("limit", "marker", "device_id")
            }
            listed = [item for item in self.items.get(kind, {}).values() if _fits(item, filters)]
            return Said(200, {f"{key}s": listed})
        if id is None:
            number = next(self.numbers)
            members = asked.json[key]
            if kind == "ports":
                members = {
                    "device_id": "",
                    "fixed_ips": [{"subnet_id": "s", "ip_address": f"10.0.0.{number}"}],
                    **members,
                }
            return Said(201, {key: dict(self.add(kind, **members))})
        item = self.items.get(kind, {}).get(id)
        if item is None:
            return _missing("NeutronError")
        if asked.verb == "DELETE" and item.get("port_forwardings"):
            return Said(409, {"NeutronError": {"type": "FloatingIPInUse", "message": "It has port forwardings."}})
        if asked.verb == "DELETE":
            del self.items[kind][id]
            return Said(204)
        if asked.verb == "PUT":
            item |= asked.json if tags else asked.json[key]
        return Said(200, {key: dict(item)})

    def _forwardings(self, asked: Asked, floating_ip: dict[str, Any], id: str | None) -> Said:
        present = floating_ip.setdefault("port_forwardings", [])
        if asked.verb == "DELETE":
            present[:] = [item for item in present if item["id"] != id]
            return Said(204)
        return Said(200, {"port_forwardings": present})

    def _change_routes(self, router: dict[str, Any], routes: list[Any], *, add: bool) -> Said:
        others = [route for route in router.get("routes", ()) if route not in routes]
        router["routes"] = [*others, *routes] if add else others
        return Said(200, {"router": dict(router)})


def clouds_yaml(folder: Path, cloud: FakeOpenStack) -> Path:
    """Write a clouds.yaml with the entry ``fake``."""
    names = {"username": "admin", "password": "admin", "project_name": "admin"}
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    entry = {"region_name": "RegionOne", "auth": {"auth_url": f"{cloud.url}/identity/v3", **names, **domains}}
    image = {
        "image_endpoint_override": f"{cloud.url}/image/v2",
        "block_storage_endpoint_override": f"{cloud.url}/volume/v3",
    }
    path = folder / "clouds.yaml"
    path.write_text(json.dumps({"clouds": {"fake": {**entry, **image}}}))
    return path


@contextmanager
def running() -> Iterator[FakeOpenStack]:
    """Yield a running cloud with the network ``private`` and the image ``tiny``."""
    cloud = FakeOpenStack()
    with answering(cloud.answer) as server:
        cloud.url = server.url
        cloud.add("networks", name="private")
        cloud.add("images", id=IMAGE, name="tiny")
        cloud.items["images"][IMAGE]["status"] = "active"
        yield cloud


def _fits(item: dict[str, Any], filters: dict[str, str]) -> bool:
    return all(value in (item.get(name), *(item["tags"] if name == "tags" else ())) for name, value in filters.items())


def _missing(key: str) -> Said:
    return Said(404, {key: {"code": 404, "message": "It could not be found.", "type": "NotFound", "detail": ""}})


def _link(url: str) -> dict[str, str]:
    return {"rel": "self", "href": url}
