"""A served Stoker as its users know it: a fleet of real agents, stacks, failures, and a rollout that is under way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.accounts import create_account
from support.agent_protocol import deploy
from support.server import LOCAL_SERVERS, HeatClient, Served, served
from support.templates import config, define, deployment, template

#: The numbers of servers of the groups web and db.
WEB, DATABASES = 8, 3
#: Fails on web3 from the second version on.
_SHOP = """#!/bin/sh
echo "Fetching shop $version for $name"
seq -f 'GET /artifacts/shop/%g.tar.gz 200' 1 12
printf '\\033[32m✓\\033[0m unpacked 418 files\\n'
if [ "$name" = web3 ] && [ "$version" != 2.3.0 ]; then
    echo "checking the migration of schema 41"
    printf '\\033[31merror:\\033[0m relation "orders_archive" already exists\\n' >&2
    exit 4
fi
printf '\\033[32m✓\\033[0m restarted in 1.2 s\\n'
"""
_PATCH = """#!/bin/sh
echo "Reading package lists"
echo "Upgrading openssl 3.0.15-1 to 3.0.17-1"
case $deploy_server_id in
{web3}) echo "E: Could not get lock /var/lib/dpkg/lock-frontend" >&2; exit 100;;
{web6}) echo "Upgrading libssl3 3.0.15-1 to 3.0.17-1"; echo "A restart of nginx is needed";;
*) echo "Upgrading libssl3 3.0.15-1 to 3.0.17-1"; echo "nginx was restarted";;
esac
"""


@dataclass
class BusySite:
    """The server, its servers by name, and the ids of what the pages show."""

    stoker: Served
    folder: Path
    servers: dict[str, str]
    stack: str
    #: A trigger on the web servers that has ended, of which web3 failed and web6 differs.
    ended: dict[str, Any]
    #: The same on all servers, under way: each run waits until ``go`` of the folder exists.
    running: dict[str, Any]
    #: The deployment that failed on web3, after an earlier one succeeded.
    failed: str
    #: A stack of nested parts, of which one failed.
    platform: str
    #: The config of ``ended``.
    upgrade: str
    #: The user who has changed the policy of web3, and a schedule.
    user: str
    schedule: str

    @property
    def home(self) -> str:
        return f"{self.stoker.url}/console/p/{self.stoker.project}/"


@contextmanager
def busy_site(folder: Path) -> Iterator[BusySite]:
    """Serve it in a folder, and end it with the context."""
    with served(folder, LOCAL_SERVERS) as stoker:
        yield _fill(stoker, folder)


def _fill(stoker: Served, folder: Path) -> BusySite:
    platform = _create_platform(stoker)
    stack = _create_stack(stoker, "shop", _shop("2.3.0"))
    servers = _list_servers(stoker)
    for number, (name, id) in enumerate(sorted(servers.items())):
        tier = next((tier for tier in ("web", "db") if name.startswith(tier)), "other")
        site = "berlin" if number % 3 else "lisbon"
        window = {"cron": "0 22 * * *", "minutes": 240, "timezone": "UTC"}
        policy = {"policy": {"maintenance_windows": [window]}} if tier == "db" else {}
        _ok(stoker, "PATCH", f"/servers/{id}", {"labels": {"tier": tier, "site": site}, **policy})
    _create_stack(stoker, "monitoring", _monitoring())
    ida = create_account(stoker, "member", name="ida")
    _ok(ida, "PATCH", f"/servers/{servers['web3']}", {"policy": {"groups": ["script", "file", "agent"]}})
    _let_drift(stoker, folder, [servers["web0"], servers["web5"]])
    patch = stoker.create_config(_PATCH.format(**servers), name="Upgrade openssl")
    web = [servers[f"web{number}"] for number in range(WEB)]
    ended = _patch(stoker, patch, web)
    _ok(stoker, "PUT", f"/stacks/shop/{stack}", {"template": _shop("2.4.1"), "disable_rollback": True})
    stoker.await_stack(f"/stacks/shop/{stack}", "UPDATE_FAILED", 180)
    wait = f"#!/bin/sh\necho 'Dumping catalog'\nwhile [ ! -e {folder}/go ]; do sleep 0.2; done\necho done\n"
    backup = stoker.create_config(wait, name="Backup of databases")
    stoker.create_config("#!/bin/sh\necho 'schema 41 is current'\n", name="Check of databases")
    backups = {"config_id": backup, "servers": list(servers.values()), "name": "Backup of databases"}
    running = stoker.create("software_triggers", **backups, max_concurrent=4, canary=2)
    databases = [servers[f"db{number}"] for number in range(DATABASES)]
    for title, cron, chosen in (
        ("Backup of databases", "30 2 * * *", databases),
        ("Restart of workers", "0 */6 * * *", web),
        ("Vacuum", "0 12 * * sun", databases[:1]),
    ):
        body = {"name": title, "cron": cron, "trigger": {"config_id": backup, "servers": chosen}}
        schedule = stoker.create("software_schedules", **body)["id"]
    stoker.create("relays", name="lisbon", url="https://relay.lisbon.example:8005")
    _wait_for_approval(stoker, "web-lisbon-41")
    failed = stoker.heat("GET", f"/stacks/shop/{stack}/resources/shop3").body["resource"]["physical_resource_id"]
    return BusySite(stoker, folder, servers, stack, ended, running, failed, platform, patch, ida.user_id, schedule)


def _shop(version: str) -> dict[str, Any]:
    machine = define("OS::Nova::Server", image="local", flavor="local")
    resources: dict[str, Any] = {"release": config(_SHOP, inputs=("version", "name"))}
    resources["schema"] = config("#!/bin/sh\necho 'schema 41 is current'\n")
    for name in (*(f"db{n}" for n in range(DATABASES)), *(f"web{n}" for n in range(WEB))):
        resources[name] = {**machine, "properties": {**machine["properties"], "name": name}}
    migrations = [f"schema{number}" for number in range(DATABASES)]
    for number, name in enumerate(migrations):
        resources[name] = deployment("schema", f"db{number}")
    for number in range(WEB):
        values = {"version": version, "name": f"web{number}"}
        resources[f"shop{number}"] = deployment("release", f"web{number}", after=tuple(migrations), input_values=values)
    return template(resources, outputs={"version": {"value": version}})


def _let_drift(stoker: Served, folder: Path, servers: list[str]) -> None:
    """Deploy a file to servers, and change it on them."""
    paths = [folder / f"motd-{number}" for number, _ in enumerate(servers)]
    for path, server in zip(paths, servers, strict=True):
        body = {"path": str(path), "content": "Managed by Stoker: see the stack shop.\n", "mode": "0644"}
        deploy(stoker, server, body, name="Message of the day", group="file")
    stoker.until(lambda: _is_complete(stoker, servers))
    for path in paths:
        path.write_text("Do not restart before Monday. Ida\n")
    _ok(stoker, "POST", "/checks", {"servers": servers})
    stoker.until(lambda: len(stoker.heat("GET", "/checks?state=DRIFTED").body["checks"]) == len(servers))


def _is_complete(stoker: Served, servers: list[str]) -> bool:
    listed = stoker.heat("GET", "/software_deployments").body["software_deployments"]
    return all(each["status"] == "COMPLETE" for each in listed if each["server_id"] in servers)


def _create_platform(stoker: Served) -> str:
    """Create a stack of nested parts, of which one fails, and return its id."""
    part = template(
        {
            "set_up": config('#!/bin/sh\necho "set up $part"\n[ "$part" != search ] || exit 3\n', inputs=("part",)),
            "install": deployment("set_up", "host", input_values={"part": {"get_param": "part"}}),
            "host": define("OS::Nova::Server", image="local", flavor="local", name={"get_param": "part"}),
        },
        parameters={"part": {"type": "string"}},
    )
    parts = {name: define("part.yaml", part=name) for name in ("cache", "queue", "search")}
    files = {"part.yaml": json.dumps(part)}
    path = stoker.create_stack("platform", template(parts), files=files, disable_rollback=True)
    stoker.await_stack(path, "CREATE_FAILED", 180)
    return path.rpartition("/")[2]


def _monitoring() -> dict[str, Any]:
    machine = define("OS::Nova::Server", image="local", flavor="local", name="metrics0")
    return template(
        {
            "metrics0": machine,
            "prometheus": config("#!/bin/sh\necho 'prometheus 3.5 is running'\n"),
            "install": deployment("prometheus", "metrics0"),
        }
    )


def _create_stack(stoker: Served, name: str, body: dict[str, Any]) -> str:
    """Create a stack, wait until it is complete, and return its id."""
    path = stoker.create_stack(name, body, disable_rollback=True)
    stoker.await_stack(path, seconds=180)
    return path.rpartition("/")[2]


def _patch(stoker: Served, config_id: str, servers: list[str]) -> dict[str, Any]:
    """Run the config on servers, and return the trigger after its end."""
    body = {"config_id": config_id, "servers": servers, "name": "Upgrade openssl", "max_fail_percentage": 50}
    trigger = stoker.create("software_triggers", **body)

    def show() -> dict[str, Any]:
        shown: dict[str, Any] = stoker.heat("GET", f"/software_triggers/{trigger['id']}").body["software_trigger"]
        return shown

    stoker.until(lambda: show()["status"] != "IN_PROGRESS", 180)
    return show()


def _wait_for_approval(stoker: Served, name: str) -> None:
    """Let a machine enroll that waits for its approval."""
    body = {"limit": 3, "approval": True, "labels": {"site": "lisbon"}}
    token = _ok(stoker, "POST", "/enrollments", body)["enrollment"]["token"]
    enrolled = stoker.request("POST", "/agent/v1/enroll", {"token": token, "instance": name, "hostname": name})
    assert enrolled.status in (201, 202), enrolled.raw


def _list_servers(stoker: Served) -> dict[str, str]:
    stoker.until(lambda: all(each["status"] == "ONLINE" for each in stoker.heat("GET", "/servers").body["servers"]))
    return {each["name"]: each["id"] for each in stoker.heat("GET", "/servers").body["servers"]}


def _ok(stoker: HeatClient, verb: str, path: str, body: dict[str, Any]) -> Any:
    answer = stoker.heat(verb, path, body)
    assert answer.status < 300, answer.raw
    return answer.body
