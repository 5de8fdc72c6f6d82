"""The little service's catalog, stored hooks, enrollments and checks."""

from collections.abc import Callable
from typing import Any

from client.little_answers import TIME, Answer, new_id


class Extensions:
    """State and calls of Stoker's own APIs."""

    def __init__(self) -> None:
        self.url = ""
        #: Catalog entries and stored hooks by NAME/VERSION.
        self.entries: dict[str, dict[str, Any]] = {}
        self.hooks: dict[str, dict[str, Any]] = {}
        self.enrollments: dict[str, dict[str, Any]] = {}
        #: Checks by the ids of their deployments.
        self.checks: dict[str, dict[str, Any]] = {}
        #: The states that requested checks get at the next look, by the ids of deployments.
        self.check_answers: dict[str, str] = {}

    # catalog and hooks

    def list_entries(self, **_: Any) -> Any:
        return {"entries": [_without(entry, "text") for entry in self.entries.values()]}

    def add_entry(self, body: Any, **_: Any) -> Any:
        fields = dict(line.split(": ", 1) for line in body["text"].splitlines() if ": " in line)
        if "name" not in fields:
            raise Answer(400, "name is required")
        entry = {
            "name": fields["name"],
            "version": int(fields["version"]),
            "description": fields.get("description", ""),
            "origin": "site" if body["public"] else "project",
            "text": body["text"],
        }
        self._add_version(self.entries, entry)
        return {"entry": _without(entry, "text")}

    def show_entry(self, id_: str, **_: Any) -> Any:
        return {"entry": self._version(self.entries, id_, "catalog entry")}

    def delete_entry(self, id_: str, **_: Any) -> Any:
        self._version(self.entries, id_, "catalog entry")
        del self.entries[id_]

    def list_hooks(self, **_: Any) -> Any:
        return {"hooks": [_without(hook, "content") for hook in self.hooks.values()]}

    def add_hook(self, body: Any, **_: Any) -> Any:
        if " " in body["name"]:
            raise Answer(400, f"{body['name']!r} is no name of a hook")
        if body["public"]:
            raise Answer(403, "Only an administrator of the site stores what every project may use.")
        version = 1 + sum(hook["name"] == body["name"] for hook in self.hooks.values())
        hook = {**body, "version": version, "sha256": "0" * 64, "size": 3, "created_by": "u", "creation_time": TIME}
        self._add_version(self.hooks, hook)
        return {"hook": _without(hook, "content")}

    def show_hook(self, id_: str, **_: Any) -> Any:
        return {"hook": self._version(self.hooks, id_, "hook")}

    def delete_hook(self, id_: str, **_: Any) -> Any:
        self._version(self.hooks, id_, "hook")
        del self.hooks[id_]

    def _add_version(self, kept: dict[str, dict[str, Any]], new: dict[str, Any]) -> None:
        id_ = f"{new['name']}/{new['version']}"
        if id_ in kept:
            raise Answer(409, f"{id_} exists already, and a version never changes: add the next version.")
        kept[id_] = new

    def _version(self, kept: dict[str, dict[str, Any]], id_: str, noun: str) -> dict[str, Any]:
        if id_ not in kept:
            raise Answer(404, f"There is no {noun} {id_}.")
        return kept[id_]

    # enrollments

    def add_enrollment(self, **more: Any) -> dict[str, Any]:
        enrollment = {
            "id": new_id(),
            "status": "ACTIVE",
            "uses": 0,
            "limit": 1,
            "labels": {},
            "expires_at": TIME,
            "server_id": None,
            "name_from": "hostname",
            "approval": False,
            "rerun": False,
            "created_by": "u",
            "created_at": TIME,
            **more,
        }
        self.enrollments[enrollment["id"]] = enrollment
        return enrollment

    def list_enrollments(self, **_: Any) -> Any:
        return {"enrollments": list(self.enrollments.values())}

    def create_enrollment(self, body: Any, **_: Any) -> Any:
        if body["limit"] > 1000:
            raise Answer(400, "limit must be at most 1000")
        kept = {name: body[name] for name in ("limit", "labels", "approval", "name_from") if name in body}
        enrollment = self.add_enrollment(**kept)
        return {"enrollment": {**enrollment, "token": "secret", "command": "echo secret | sh", "url": self.url}}

    def delete_enrollment(self, id_: str, **_: Any) -> Any:
        if id_ not in self.enrollments:
            raise Answer(404, f"The Enrollment ({id_}) could not be found.")
        del self.enrollments[id_]

    # checks

    def add_check(self, state: str, **more: Any) -> dict[str, Any]:
        check = {
            "deployment_id": new_id(),
            "name": "config",
            "stack_id": None,
            "stack_name": None,
            "resource_name": None,
            "server_id": "s",
            "server_name": "web1",
            "server_status": "ONLINE",
            "state": state,
            "since": TIME,
            "checked_at": TIME,
            "requested_at": None,
            "pending": False,
            "check_interval": None,
            "enforce": False,
            "reason": "",
            "summary": "",
            "changes": [],
            **more,
        }
        self.checks[check["deployment_id"]] = check
        return check

    def list_checks(self, query: dict[str, str], several: dict[str, list[str]], **_: Any) -> Any:
        for id_ in [id_ for id_ in self.check_answers if self.checks[id_]["pending"]]:
            self.checks[id_].update(pending=False, requested_at=None, state=self.check_answers[id_])
        keys = {"state": "state", "stack": "stack_id", "server": "server_id"}
        wanted = {key: query[name] for name, key in keys.items() if name in query}
        rows = [check for check in self.checks.values() if wanted.items() <= check.items()]
        if "deployment_id" in several:
            rows = [check for check in rows if check["deployment_id"] in several["deployment_id"]]
        ids = [check["deployment_id"] for check in rows]
        start = ids.index(query["marker"]) + 1 if "marker" in query else 0
        return {"checks": [_without(check, "changes") for check in rows[start:][: int(query.get("limit", 100))]]}

    def show_check(self, id_: str, **_: Any) -> Any:
        if id_ not in self.checks:
            raise Answer(404, f"The deployment ({id_}) has no check: request one, or set its check_interval.")
        return {"check": self.checks[id_]}

    def request_checks(self, body: Any, **_: Any) -> Any:
        servers, stack = body.get("servers"), body.get("stack")
        rows = [
            check
            for check in self.checks.values()
            if (servers is None or check["server_id"] in servers) and stack in (None, check["stack_id"])
        ]
        for check in rows:
            check.update(pending=True, requested_at=TIME)
        return {"checks": [_without(check, "changes") for check in rows]}


def _without(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != name}


ROUTES: list[tuple[str, str, Callable[..., Any], int]] = [
    ("GET", "/catalog", Extensions.list_entries, 200),
    ("POST", "/catalog", Extensions.add_entry, 201),
    ("GET", "/catalog/(?P<id_>[^/]+/[0-9]+)", Extensions.show_entry, 200),
    ("DELETE", "/catalog/(?P<id_>[^/]+/[0-9]+)", Extensions.delete_entry, 204),
    ("GET", "/hooks", Extensions.list_hooks, 200),
    ("POST", "/hooks", Extensions.add_hook, 201),
    ("GET", "/hooks/(?P<id_>[^/]+/[0-9]+)", Extensions.show_hook, 200),
    ("DELETE", "/hooks/(?P<id_>[^/]+/[0-9]+)", Extensions.delete_hook, 204),
    ("GET", "/enrollments", Extensions.list_enrollments, 200),
    ("POST", "/enrollments", Extensions.create_enrollment, 201),
    ("DELETE", "/enrollments/(?P<id_>[^/]+)", Extensions.delete_enrollment, 204),
    ("GET", "/checks", Extensions.list_checks, 200),
    ("POST", "/checks", Extensions.request_checks, 2020),
    ("GET", "/checks/(?P<id_>[^/]+)", Extensions.show_check, 200),
]
