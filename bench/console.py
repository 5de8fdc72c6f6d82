"""
The console of a large site in Chromium: `python -m bench console`.

A Stoker on SQLite has 10,000 servers, a trigger on all of them, a stack of 1,000 resources and 100,000 runs of history.
Figures: milliseconds until each page shows its content and reacts, frames while it changes, the bytes of the first
load, and the CPU time that 50 consoles cost the server while a trigger runs on 2,000 servers.
"""

from __future__ import annotations

import http.client
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bench.api import Api
from bench.cases import RESULT, Target, template
from bench.measure import cpu_seconds, wait_until
from bench.swarm import enroll_servers

_SERVERS, _RESOURCES, _RUNS, _TRIGGERS = 10_000, 1_000, 100_000, 1_000
#: Consoles on a running trigger, its servers, and its runs that end in a second.
_CONSOLES, _TARGETS, _PACE = 50, 2_000, 50
#: Options of triggers that no failure ends.
_TOLERANT = {"max_fail_percentage": 100}
#: Seconds for which frames are counted, and CPU time is measured.
_SECONDS = 10
#: Returns when the content and the navigation of a page have appeared, in milliseconds since its request.
_WATCH = """selector => new Promise(done => {
  let interactive = 0;
  const look = () => {
    if (!interactive && document.querySelector("nav a")) interactive = performance.now();
    if (document.querySelector(selector)) done([performance.now(), interactive]);
    else requestAnimationFrame(look);
  };
  look();
})"""
#: Counts frames, and returns their number per second and the longest time between two, in milliseconds.
_FRAMES = """seconds => new Promise(done => {
  const begin = performance.now();
  let last = begin, count = 0, longest = 0;
  const next = now => {
    count++;
    longest = Math.max(longest, now - last);
    last = now;
    if (now - begin < seconds * 1000) requestAnimationFrame(next);
    else done([count / seconds, longest]);
  };
  requestAnimationFrame(next);
})"""


def run(target: Target, state_dir: Path) -> None:
    """Measure a new Stoker on SQLite with this state directory, and print a table of the figures."""
    print("| figure | measured |\n|---|---|", flush=True)

    def report(figure: str, value: str) -> None:
        print(f"| {figure} | {value} |", flush=True)

    site = fill(target, state_dir / "stoker.db")
    with _window(target) as page:
        for name, (path, selector) in _pages(site).items():
            content, interactive = _open(page, path, selector)
            report(name, f"content {content:.0f} ms, interactive {interactive:.0f} ms")
            if name == "overview":
                report("first load", f"{_loaded_bytes(page) / 1000:.1f} kB")
        for name in ("one trigger", "servers", "overview"):
            _open(page, *_pages(site)[name])
            frames, longest = _count_frames(target, page, site["trigger"])
            report(f"{name}, while runs end", f"{frames:.0f} frames/s, longest {longest:.0f} ms")
    few = {"servers": site["servers"].split()[:_TARGETS], **_TOLERANT}
    small = target.api.start_trigger(target.api.create_config(), **few)
    report("CPU of a core that 50 consoles add to a trigger on 2,000", f"{measure_consoles(target, small):.1f} %")


def fill(target: Target, database: Path) -> Mapping[str, str]:
    """Create the objects, and return the ids of those with a page, and of all servers."""
    servers = target.count(_SERVERS)
    (server,) = enroll_servers(target.api.call, ["server-0"]).values()
    config = target.api.create_config()
    old = target.api.start_trigger(config, servers=[server["id"]])
    target.api("POST", f"/software_triggers/{old}/cancel", {"force": True})
    wait_until(lambda: target.api.show_trigger(old)["status"] != "IN_PROGRESS")
    with closing(sqlite3.connect(database, timeout=60)) as connection:
        unique = "lower(hex(randomblob(16)))"
        names = {"id": unique, "name": "'server-' || n", "instance": unique, "machine": unique}
        _multiply(connection, "servers", {**names, "last_seen": f"{time.time_ns() // 1000}"}, servers - 1)
        _multiply(connection, "triggers", {"id": unique}, target.count(_TRIGGERS))
        of_server = f"(SELECT id FROM servers WHERE rowid = 1 + n % {servers})"
        copies = {"id": unique, "config_id": unique, "server_id": of_server}
        _multiply(connection, "deployments", copies, target.count(_RUNS))
        ids = [id for (id,) in connection.execute("SELECT id FROM servers")]
    deployments = target.count(_RESOURCES) * 9 // 10
    stack = template(deployments, servers=target.count(_RESOURCES) - deployments - 1)
    stack_id = target.api("POST", "/stacks", {"stack_name": "large", "template": stack})["stack"]["id"]
    target.api.wait("large", stack_id, "CREATE_COMPLETE")
    trigger = target.api.start_trigger(config, servers=ids, **_TOLERANT)
    first = target.api("GET", f"/software_triggers/{trigger}/targets?limit=1")["targets"][0]
    return {
        "server": server["id"],
        "stack": stack_id,
        "trigger": trigger,
        "run": first["deployment_id"],
        "servers": " ".join(ids),
    }


def _multiply(connection: sqlite3.Connection, table: str, changes: Mapping[str, str], count: int) -> None:
    """Copy the last row of a table ``count`` times, with other expressions for some columns; ``n`` is a number."""
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "seq"]
    selected = ", ".join(changes.get(column, f"{table}.{column}") for column in columns)
    with connection:
        connection.execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)"
            f" INSERT INTO {table} ({', '.join(columns)}) SELECT {selected} FROM numbers,"
            f" (SELECT * FROM {table} ORDER BY rowid DESC LIMIT 1) AS {table}",
            (count,),
        )


def _pages(site: Mapping[str, str]) -> Mapping[str, tuple[str, str]]:
    """Return the path of each page, and what its content is."""
    return {
        "overview": ("", ".tile-count"),
        "servers": ("servers", "tbody tr"),
        "one server": (f"servers/{site['server']}", "tbody tr"),
        "stacks": ("stacks", "tbody tr"),
        "one stack": (f"stacks/large/{site['stack']}", "tbody tr"),
        "its graph": (f"stacks/large/{site['stack']}?tab=graph&all=1", "svg .node"),
        "triggers": ("triggers", "tbody tr"),
        "one trigger": (f"triggers/{site['trigger']}", "tbody tr"),
        "one run": (f"runs/{site['run']}", ".facts .state"),
    }


@contextmanager
def _window(target: Target) -> Iterator[Any]:
    """Yield a page of Chromium that is signed in."""
    from playwright.sync_api import sync_playwright  # only this benchmark needs a browser

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(f"http://{target.api.base.netloc}/console/p/{target.api.base.path.rpartition('/')[2]}/")
        page.get_by_label("User name").fill(target.api.environment["OS_USERNAME"])
        page.get_by_label("Password").fill(target.api.environment["OS_PASSWORD"])
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("navigation").wait_for()
        yield page
        browser.close()


def _open(page: Any, path: str, selector: str) -> tuple[float, float]:
    """Open a page, and return the milliseconds until its content is shown, and until it reacts."""
    home = page.url.partition("/console/")[0] + "/console/p/" + page.url.partition("/p/")[2].partition("/")[0] + "/"
    page.goto(home + path, wait_until="commit")
    content, interactive = page.evaluate(_WATCH, selector)
    return float(content), float(interactive)


def _loaded_bytes(page: Any) -> int:
    """Return the compressed bytes of the scripts and styles of the page."""
    entries = "performance.getEntriesByType('resource').filter(({name}) => name.includes('/assets/'))"
    return int(page.evaluate(f"{entries}.reduce((sum, entry) => sum + entry.encodedBodySize, 0)"))


def _count_frames(target: Target, page: Any, trigger: str) -> tuple[float, float]:
    """Return the frames of the page per second, and the longest one in milliseconds, while runs of the trigger end."""
    path = f"/software_triggers/{trigger}/targets?limit=1000&status=IN_PROGRESS"
    ids = [one["deployment_id"] for one in target.api("GET", path)["targets"]]
    ended = threading.Event()

    def end(id: str) -> None:
        if not ended.is_set():
            target.api("PUT", f"/software_deployments/{id}", {"status": "COMPLETE", "output_values": RESULT})
            time.sleep(0.02)  # about a hundred a second, with two threads

    with ThreadPoolExecutor(2) as threads:
        for id in ids:
            threads.submit(end, id)
        frames, longest = page.evaluate(_FRAMES, _SECONDS)
        ended.set()
    return float(frames), float(longest)


def measure_consoles(target: Target, trigger: str) -> float:
    """Return what the consoles add to the CPU time while runs of a trigger end, in percent of a core."""
    _end_runs(target, trigger)  # warms caches
    alone = _end_runs(target, trigger)
    windows = [_Window(target, trigger) for _ in range(_CONSOLES)]
    for window in windows:
        window.is_open.wait()
    with_consoles = _end_runs(target, trigger)
    target.api("POST", f"/software_triggers/{trigger}/cancel", {"force": True})
    for window in windows:
        window.join()
    return 100 * (with_consoles - alone) / _SECONDS


def _end_runs(target: Target, trigger: str) -> float:
    """End runs of a trigger at a steady pace for some seconds. Return the CPU time of the server in seconds."""
    path = f"/software_triggers/{trigger}/targets?limit={_SECONDS * _PACE}&status=IN_PROGRESS"
    wait_until(lambda: target.api.show_trigger(trigger, "?targets=false")["running"] >= _SECONDS * _PACE)
    ids = [one["deployment_id"] for one in target.api("GET", path)["targets"]]
    began, cpu = time.monotonic(), cpu_seconds(target.pids)
    for number, id in enumerate(ids, start=1):
        target.api("PUT", f"/software_deployments/{id}", {"status": "COMPLETE", "output_values": RESULT})
        time.sleep(max(0.0, began + number / _PACE - time.monotonic()))
    return cpu_seconds(target.pids) - cpu


class _Window(threading.Thread):
    """Requests what the page of a trigger requests: the states of all targets, and their changes until the end."""

    def __init__(self, target: Target, trigger: str) -> None:
        super().__init__(daemon=True)
        self.is_open = threading.Event()
        self._api, self._trigger = Api(target.api.environment), trigger
        self.start()

    def run(self) -> None:
        base, headers = self._api.base, {"X-Auth-Token": self._api.token}
        targets = self._api("GET", f"/software_triggers/{self._trigger}/targets/compact")
        with closing(http.client.HTTPConnection(base.hostname or "", base.port, timeout=120)) as line:
            query = f"subject=trigger:{self._trigger}&events=state&events=trigger"
            headers["Last-Event-ID"] = targets["cursor"]
            line.request("GET", f"{base.path.rstrip('/')}/events?{query}", headers=headers)
            response = line.getresponse()
            while response.read1(65536):
                self.is_open.set()
