"""A real browser, and a Stoker with real agents that it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from support import waiting
from support.accounts import PASSWORD, Account, create_account
from support.databases import missing
from support.server import LOCAL_SERVERS, Served, served
from support.source_code import ROOT
from support.templates import config, define, deployment, template
from support.tools import find_tool

AXE = ROOT / "console/node_modules/axe-core/axe.min.js"
#: Names and output that try to be something else than text.
HOSTILE = "<img src=x onerror=alert(1)>"
#: A script that writes a line, and another one when its file appears.
WAITING = """#!/bin/sh
echo "begun with {hostile}"
while [ ! -e {folder}/go ]; do sleep 0.05; done
printf '\\033[31mred\\033[0m end\\n'
echo oops >&2
"""


@dataclass
class Site:
    """A served Stoker with five servers of a stack, one of which has run a script that failed."""

    stoker: Served
    folder: Path
    stack: str
    member: Account
    reader: Account
    servers: list[dict[str, Any]]

    @property
    def home(self) -> str:
        return f"{self.stoker.url}/console/p/{self.stoker.project}/"

    def server(self, name: str) -> str:
        """Return the id of the server with this name."""
        return next(str(server["id"]) for server in self.servers if server["name"] == name)

    def create_stack(self, name: str, template: Any, state: str = "CREATE_COMPLETE", **more: Any) -> str:
        """Create a stack, wait until it has this state, and return its path."""
        path = self.stoker.create_stack(name, template, disable_rollback=True, **more)
        self.stoker.await_stack(path, state)
        return path

    def end_session(self, account: Account) -> None:
        """Revoke the tokens of a user, who can log in again."""
        path, headers = f"/identity/v3/users/{account.user_id}", {"X-Auth-Token": self.stoker.token}
        for enabled in (False, True):
            assert self.stoker.request("PATCH", path, {"user": {"enabled": enabled}}, headers).status == 200

    def trigger(self, script: str, name: str = "task", most: int | None = None) -> dict[str, Any]:
        """Run a script on all servers of the group, or on ``most`` of them."""
        ids = [server["id"] for server in self.servers if server["name"].startswith("web")]
        config_id = self.stoker.create_config(script, name=name)
        return self.stoker.create("software_triggers", config_id=config_id, servers=ids[:most])

    def ended(self, trigger: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end of a trigger, and return it."""

        def show() -> dict[str, Any]:
            return self.stoker.heat("GET", f"/software_triggers/{trigger['id']}").body["software_trigger"]

        waiting.until(lambda: show()["status"] != "IN_PROGRESS", 90)
        return show()

    def run_of(self, trigger: dict[str, Any]) -> str:
        """Return the id of the deployment of the trigger's first target, after that run has begun."""

        def first() -> dict[str, Any]:
            targets = self.stoker.heat("GET", f"/software_triggers/{trigger['id']}/targets").body["targets"]
            return targets[0]

        waiting.until(lambda: first()["deployment_id"] and first()["run"], 60)
        return str(first()["deployment_id"])


def _template() -> dict[str, Any]:
    local = {"image": "local", "flavor": "local"}
    member = define("OS::Nova::Server", **local, name="web%index%")
    return template(
        {
            "server": define("OS::Nova::Server", **local),
            "fleet": define("OS::Heat::ResourceGroup", resource_def=member, count=4),
            "first": config("#!/bin/sh\necho one\necho '<b>two</b>'"),
            "second": config("#!/bin/sh\necho 'no space left' >&2\nexit 3"),
            "prepare": deployment("first"),
            "migrate": deployment("second", after=("prepare",)),
        },
        outputs={"name": {"value": HOSTILE}},
    )


@pytest.fixture(scope="module")
def site(built_console, tmp_path_factory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("console")
    with served(folder, LOCAL_SERVERS) as stoker:
        path = stoker.create_stack("shop", _template(), disable_rollback=True)
        stoker.await_stack(path, "CREATE_FAILED")
        stack = path.rpartition("/")[2]
        stoker.until(lambda: all(server["status"] == "ONLINE" for server in _list_servers(stoker)))
        member, reader = create_account(stoker, "member"), create_account(stoker, "reader")
        yield Site(stoker, folder, stack, member, reader, _list_servers(stoker))


def _list_servers(stoker: Served) -> list[dict[str, Any]]:
    servers: list[dict[str, Any]] = stoker.heat("GET", "/servers").body["servers"]
    return servers


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Ends with the module: its event loop must not run in tests of other modules."""
    expect.set_options(timeout=60_000)  # the machine may be busy
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(executable_path=find_tool("chromium"), args=["--no-sandbox"])
    yield browser
    browser.close()


@dataclass
class Window:
    """A page of a browser, and what it has complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Window]


@pytest.fixture
def open_window(site: Site, chromium: Browser) -> Iterator[Open]:
    """Return a function that opens a window and signs in. Each window must end without an error of its own."""
    contexts: list[BrowserContext] = []
    windows: list[Window] = []

    def open(path: str = "", account: Account | None = None, **options: Any) -> Window:
        context = chromium.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(60_000)
        contexts.append(context)
        window = Window(context.new_page())
        windows.append(window)
        window.page.on("pageerror", lambda error: window.complaints.append(str(error)))
        window.page.on(
            "console", lambda message: window.complaints.append(message.text) if is_violation(message) else None
        )
        name, password = (account.name, PASSWORD) if account else ("admin", site.stoker.environment["OS_PASSWORD"])
        window.page.goto(site.home + path)
        sign_in(window.page, name, password)
        return window

    yield open
    for context in contexts:
        context.close()
    assert [complaint for window in windows for complaint in window.complaints] == []


def sign_in(page: Page, name: str, password: str) -> None:
    page.get_by_label("User name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation").wait_for()


def sign_in_again(page: Page) -> None:
    """Write the password into the dialog over a page whose session has ended."""
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Your session has ended")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_have_count(0)


def is_loaded(page: Page) -> None:
    """Wait until a page shows its content."""
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def confirm(page: Page, label: str) -> None:
    """Press a button, and the one of the question that follows."""
    page.get_by_role("button", name=label, exact=True).first.click()
    page.get_by_role("dialog").get_by_role("button", name=label, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def problems_of(page: Page, axe: str) -> list[str]:
    """Return what axe-core finds on the page."""
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}" for each in found["violations"]]


def is_violation(message: Any) -> bool:
    """Return whether a message of the browser's console is about its content policy, or an error of a script."""
    return message.type == "error" and "Failed to load resource" not in message.text


@pytest.fixture(scope="session")
def axe() -> str:
    if not AXE.exists():
        missing("axe-core is not installed: make console")
    return AXE.read_text()
