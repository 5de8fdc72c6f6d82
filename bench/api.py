"""A small client of Keystone and Heat with a low cost, so that it does not distort the measurement."""

from __future__ import annotations

import json
import time
import urllib.parse
import uuid
from typing import Any

from support.connection_pool import ConnectionPool


class Api:
    """Calls the APIs on connections that are kept, one for each thread at a time."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self.token, base = self._login()
        self.base = urllib.parse.urlsplit(base)
        self._connections = ConnectionPool(self.base.hostname or "", self.base.port or 80)

    def __call__(
        self, verb: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None, absolute: bool = False
    ) -> Any:
        sent = {"X-Auth-Token": self.token, "Accept": "application/json", **(headers or {})}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        target = path if absolute else self.base.path.rstrip("/") + path
        status, answer, raw = self.send(verb, target, data, sent)
        if status in (301, 302) and verb == "GET":
            location = urllib.parse.urlsplit(answer["Location"])
            return self(verb, f"{location.path}?{location.query}".rstrip("?"), absolute=True)
        if status >= 400:
            raise RuntimeError(f"{verb} {path}: {status} {raw[:300]!r}")
        try:
            return json.loads(raw) if raw else None
        except ValueError:
            return raw

    def call(self, verb: str, path: str, body: Any) -> Any:
        """Call Heat's API, or the agent API for a path below /agent, as ``enroll_servers`` expects."""
        return self(verb, path, body, absolute=path.startswith("/agent"))

    def send(self, verb: str, target: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, Any, bytes]:
        """Send unencoded bytes. Return the status, headers and body of the answer."""
        return self._connections.request(verb, target, data, headers, 600)

    def _login(self) -> tuple[str, str]:
        told = self.environment
        url = urllib.parse.urlsplit(told["OS_AUTH_URL"])
        connections = ConnectionPool(url.hostname or "", url.port or 80, is_kept=False)
        user = {
            "name": told["OS_USERNAME"],
            "domain": {"name": told.get("OS_USER_DOMAIN_NAME", "Default")},
            "password": told["OS_PASSWORD"],
        }
        project = {
            "name": told["OS_PROJECT_NAME"],
            "domain": {"name": told.get("OS_PROJECT_DOMAIN_NAME", "Default")},
        }
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": project},
            }
        }
        path = url.path.rstrip("/") + "/auth/tokens"
        headers = {"Content-Type": "application/json"}
        _, answer, raw = connections.request("POST", path, json.dumps(body).encode(), headers, 60)
        for service in json.loads(raw)["token"]["catalog"]:
            if service["type"] == "orchestration":
                public = next(each for each in service["endpoints"] if each["interface"] == "public")
                return answer["X-Subject-Token"], public["url"]
        raise RuntimeError("the catalog has no orchestration endpoint")

    @property
    def project_id(self) -> str:
        """The id of the project that the user has logged in to."""
        return self.base.path.rstrip("/").rpartition("/")[2]

    def renew(self) -> None:
        """Log in again."""
        self.token, _ = self._login()

    def create_config(self, **body: Any) -> str:
        """Create a config, by default of a script that does nothing. Return its id."""
        body = {"name": "c", "group": "script", "config": "true", **body}
        id: str = self("POST", "/software_configs", body)["software_config"]["id"]
        return id

    def start_trigger(self, config_id: str, **body: Any) -> str:
        """Start a trigger of a config and return its id."""
        return str(self("POST", "/software_triggers", {"config_id": config_id, **body})["software_trigger"]["id"])

    def show_trigger(self, id: str, query: str = "") -> Any:
        """Return a trigger, with its targets unless ``query`` restricts them."""
        return self("GET", f"/software_triggers/{id}{query}")["software_trigger"]

    def create_stack(self, template: dict[str, Any], **more: Any) -> tuple[str, str]:
        """Create a stack with a random name. Return its name and id."""
        for attempt in range(6):
            name = "b" + uuid.uuid4().hex[:10]
            body = {"stack_name": name, "template": template, "timeout_mins": 60, "disable_rollback": True, **more}
            try:
                return name, self("POST", "/stacks", body)["stack"]["id"]
            except RuntimeError as error:
                # Heat 27 sometimes requests a trust from Keystone with a domain-scoped token. A new login resolves
                # that.
                if ": 500 " not in str(error) or attempt == 5:
                    raise
                self.renew()
        raise AssertionError("unreachable")

    def wait(self, name: str, id: str, wanted: str, *, poll: float = 0.05, limit: float = 900) -> None:
        """Poll a stack until its status is ``wanted``. Raises RuntimeError if it fails."""
        until = time.perf_counter() + limit
        while time.perf_counter() < until:
            status = self("GET", f"/stacks/{name}/{id}?resolve_outputs=False")["stack"]["stack_status"]
            if status == wanted:
                return
            if status.endswith("_FAILED"):
                raise RuntimeError(f"stack {name} is {status}")
            time.sleep(poll)
        raise RuntimeError(f"stack {name} is not {wanted} after {limit} s")

    def delete_stack(self, name: str, id: str) -> None:
        """Delete a stack and wait for the end of its deletion."""
        self("DELETE", f"/stacks/{name}/{id}")
        try:
            self.wait(name, id, "DELETE_COMPLETE")
        except RuntimeError as error:
            if ": 404 " not in str(error):
                raise


def variables(exports: str) -> dict[str, str]:
    """Parse the ``export`` lines of a shell."""
    words = [word for line in exports.splitlines() if line.startswith("export ") for word in line.split()[1:]]
    return {name: value.strip("'\"") for name, _, value in (word.partition("=") for word in words)}
