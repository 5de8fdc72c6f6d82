"""Pages whose updates come late, from afar, or not at all, and those of several windows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from support import waiting
from support.accounts import create_project
from support.http_stub import Asked, Said, answering, forward
from support.ports import free_port
from support.server import Served
from support.source_code import SERVER
from support.templates import config, template

from .conftest import Site, sign_in

PAUSED, HELD = "[data-connection=paused]", "[data-connection=held]"


@pytest.fixture
def new_stack(site: Site) -> Iterator[str]:
    """The name of a stack that the test creates."""
    name = f"new-{uuid4().hex[:6]}"
    yield name
    site.stoker.heat("DELETE", f"/stacks/{name}")


def streams_of(page: Page) -> int:
    """The streams that all windows of the browser have open."""
    locks = page.evaluate("navigator.locks.query().then(({held}) => held.map(({name}) => name))")
    return len([name for name in locks if name.startswith("stoker-stream")])


def hide(page: Page, is_hidden: bool) -> None:
    page.evaluate(
        "isHidden => { Object.defineProperty(document, 'hidden', {value: isHidden, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        is_hidden,
    )


def test_seven_windows_share_four_streams(open_window, site, new_stack):
    first = open_window("stacks").page
    pages = [first, *(first.context.new_page() for _ in range(6))]
    for page in pages[1:]:
        page.goto(first.url)
    for page in pages:
        expect(page.locator("tbody tr").first).to_be_visible()
    waiting.until(lambda: sum(page.locator(PAUSED).count() for page in pages) == 3, 60)
    assert streams_of(first) == 4
    paused = next(page for page in pages if page.locator(PAUSED).count())
    expect(paused.locator(".stale tbody tr").first).to_be_visible()
    site.create_stack(new_stack, template({"a": config()}))
    live = next(page for page in pages if not page.locator(PAUSED).count())
    expect(live.get_by_role("link", name=new_stack)).to_be_visible()
    assert paused.get_by_role("link", name=new_stack).count() == 0
    paused.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(paused.locator(PAUSED)).to_have_count(0)
    expect(paused.get_by_role("link", name=new_stack)).to_be_visible()
    waiting.until(lambda: sum(page.locator(PAUSED).count() for page in pages) == 3, 60)


def test_a_hidden_window_closes_its_stream_and_catches_up(open_window, site, new_stack):
    page = open_window("stacks").page
    expect(page.locator("tbody tr").first).to_be_visible()
    waiting.until(lambda: streams_of(page) == 1, 60)
    hide(page, True)
    waiting.until(lambda: streams_of(page) == 0, 60)
    site.create_stack(new_stack, template({"a": config()}))
    hide(page, False)
    expect(page.get_by_role("link", name=new_stack)).to_be_visible()
    expect(page.locator(".banner")).to_have_count(0)
    waiting.until(lambda: streams_of(page) == 1)


def test_a_console_below_the_path_of_a_proxy_is_live(open_window, site, new_stack):
    page = open_window("").page.context.new_page()
    with answering(lambda asked: forward(site.stoker.port, asked, "/sites/stoker")) as proxy:
        url = f"{proxy.url}/sites/stoker"
        page.goto(f"{url}/console/p/{site.stoker.project}/stacks")
        sign_in(page, "admin", site.stoker.environment["OS_PASSWORD"])
        expect(page.locator("tbody tr").first).to_be_visible()
        site.create_stack(new_stack, template({"a": config()}))
        expect(page.get_by_role("link", name=new_stack)).to_be_visible()
        page.get_by_role("link", name="shop", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("shop")
        assert page.url.startswith(f"{url}/console/p/")
        page.close()


def test_a_proxy_that_holds_a_stream_back_is_named(open_window, site):
    def hold_back(asked: Asked) -> Said:
        said = forward(site.stoker.port, asked, "/stoker")
        return said if said.stream is None else Said(said.status, b"".join(said.stream), said.headers)

    page = open_window("").page.context.new_page()
    with answering(hold_back) as proxy:
        page.goto(f"{proxy.url}/stoker/console/p/{site.stoker.project}/stacks")
        sign_in(page, "admin", site.stoker.environment["OS_PASSWORD"])
        expect(page.locator("tbody tr").first).to_be_visible()
        expect(page.locator(HELD)).to_contain_text("a proxy holds the stream back")
        expect(page.locator(".stale tbody tr").first).to_be_visible()
        page.close()


def test_a_page_of_another_version_asks_for_a_reload(open_window, site):
    page = open_window("").page
    path = re.compile(r"/console/p/[^/]+/stacks$")

    def answer(route) -> None:
        response = route.fetch()
        route.fulfill(
            response=response, body=re.sub(r"version&quot;: &quot;[^&]+", "version&quot;: &quot;0", response.text())
        )

    page.route(path, answer)
    page.goto(page.url + "stacks")
    expect(page.locator(".upgraded")).to_contain_text("Stoker was upgraded")
    page.unroute(path)
    page.get_by_role("button", name="Reload").click()
    expect(page.locator("tbody tr").first).to_be_visible()
    expect(page.locator(".upgraded")).to_have_count(0)


def test_a_project_without_rights_says_so(open_window, site):
    other = create_project(site.stoker)
    page = open_window("stacks", account=site.member).page
    page.goto(page.url.replace(site.stoker.project, other))
    expect(page.locator("main")).to_contain_text("You have no role in this project.")
    page.get_by_role("link", name="Choose another one").click()
    # Of one project, the console shows the overview; of several, their list.
    expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("Overview|Choose a project"))


def test_an_installation_without_the_console_says_so(chromium, tmp_path):
    code = shutil.copytree(SERVER, tmp_path / "code/stoker", ignore=shutil.ignore_patterns("built", "__pycache__"))
    (folder := tmp_path / "site").mkdir()
    stoker = Served(folder, free_port(), ("--no-clouds-yaml",), is_forked=False)
    stoker.variables = {"PYTHONPATH": str(code.parent)}
    try:
        stoker.start()
        page = chromium.new_page()
        page.goto(f"{stoker.url}/console/")
        expect(page.locator("body")).to_contain_text("This installation of Stoker lacks the console")
        page.close()
    finally:
        stoker.end()
