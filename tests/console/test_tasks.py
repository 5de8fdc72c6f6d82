"""
Tasks of administrators, each done with the keyboard alone, by somebody who knows only what the pages show.

That are the names and roles of things, and the keys that the dialog of keys lists.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from support.busy_site import BusySite, busy_site

from .test_pages import is_loaded, problems_of

#: Key presses after which somebody gives up to reach something.
_PATIENCE = 80


@pytest.fixture(scope="module")
def site(built_console, tmp_path_factory) -> Iterator[BusySite]:
    with busy_site(tmp_path_factory.mktemp("busy")) as site:
        yield site


class Hands:
    """Uses a page with the keyboard only, and counts the key presses."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.presses = 0

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.presses += 1

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.presses += len(text)

    def go(self, locator: Locator) -> None:
        """Press Tab until this has the focus."""
        expect(locator).to_be_visible()
        for _ in range(_PATIENCE):
            if locator.evaluate("element => element === document.activeElement"):
                return
            self.press("Tab")
        raise AssertionError(f"{locator} is not reached in {_PATIENCE} presses of Tab")

    def open(self, locator: Locator) -> None:
        self.go(locator)
        self.press("Enter")

    def title(self, text: str) -> None:
        """Wait for the page with this title."""
        expect(self.page.get_by_role("heading", level=1)).to_have_text(text)


@pytest.fixture
def hands(open_window) -> Hands:
    page = open_window().page
    page.get_by_role("heading", level=1).wait_for()
    return Hands(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_compared_runs_are_accessible(open_window, site, axe, scheme):
    page = open_window(f"runs/{site.failed}?with=1", color_scheme=scheme).page
    is_loaded(page)
    expect(page.get_by_role("region", name="Run 2 beside run 1")).to_contain_text("Standard error")
    assert problems_of(page, axe) == []


def test_which_deployment_failed_on_web3_and_what_changed_since_it_worked(hands):
    page = hands.page
    hands.press("g", "v")
    hands.title("Servers")
    hands.open(page.get_by_role("link", name="web3", exact=True))
    hands.title("web3")
    expect(page.get_by_role("link", name="shop/shop3")).to_be_visible()
    hands.press("n")  # to the failed one
    expect(page.get_by_role("link", name="shop/shop3")).to_be_focused()
    hands.press("Enter")
    hands.title("shop/shop3")
    expect(page.get_by_text('relation "orders_archive" already exists').first).to_be_visible()
    hands.open(page.get_by_role("button", name="What changed since it last worked"))
    comparison = page.get_by_role("region", name="Run 2 beside run 1")
    expect(comparison.get_by_role("row", name="Input version")).to_contain_text("2.3.02.4.1")
    expect(comparison).to_contain_text("+ checking the migration of schema 41")
    assert hands.presses < 60


def test_which_servers_differ_from_the_others_after_the_upgrade(hands):
    page = hands.page
    hands.press("g", "t")
    hands.title("Triggers")
    hands.open(page.get_by_role("link", name="Upgrade openssl"))
    hands.title("Upgrade openssl")
    groups = page.get_by_role("region", name="Equal output").get_by_role("listitem")
    expect(groups).to_have_count(3)
    expect(groups.nth(0)).to_contain_text("6 servers")
    expect(groups.nth(0)).to_contain_text("web[0-2,4-5,7]")
    expect(groups.nth(1)).to_contain_text("+ A restart of nginx is needed")
    expect(groups.nth(2)).to_contain_text("exit code 100")
    assert hands.presses < 30


def test_show_only_the_failed_servers_of_the_upgrade_to_a_colleague(hands, open_window):
    page = hands.page
    hands.press("g", "t")
    hands.open(page.get_by_role("link", name="Upgrade openssl"))
    hands.title("Upgrade openssl")
    hands.open(page.get_by_role("group", name="Filter by state").get_by_role("button", name="failed"))
    expect(page.get_by_role("row", name="web3")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_role("region", name="Equal output").get_by_role("listitem")).to_have_count(1)
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("tbody tr")).to_have_count(1)


def test_approve_the_waiting_server(hands):
    page = hands.page
    hands.open(page.get_by_role("link", name="wait for approval"))
    hands.title("Servers")
    hands.open(page.get_by_role("link", name="web-lisbon-41"))
    hands.title("web-lisbon-41")
    hands.open(page.get_by_role("button", name="Approve"))
    hands.open(page.get_by_role("dialog").get_by_role("button", name="Approve"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    assert hands.presses < 80


def test_find_the_line_that_explains_the_failure_and_link_to_it(hands, site):
    page = hands.page
    hands.press("g", "s")
    hands.title("Stacks")
    hands.press("n", "Enter")
    hands.title("shop")
    expect(page.get_by_role("link", name="shop3")).to_be_visible()
    hands.press("n", "Enter")
    hands.title("shop/shop3")
    expect(page.get_by_text("16 lines")).to_be_visible()
    hands.press("/")
    hands.type("error:")
    expect(page.get_by_text("1 of 1 lines")).to_be_visible()
    assert "search=error" in page.url
    hands.press("Enter")
    expect(page.locator(".line.current")).to_contain_text("orders_archive")


def test_retry_the_upgrade_where_it_failed(hands):
    page = hands.page
    hands.press("g", "t")
    hands.open(page.get_by_role("link", name="Upgrade openssl").last)
    hands.title("Upgrade openssl")
    before = page.url
    hands.open(page.get_by_role("button", name="Retry failed"))
    hands.open(page.get_by_role("dialog").get_by_role("button", name="Retry failed"))
    page.wait_for_url(lambda url: url != before)
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuemax", "1")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "1")


def test_which_triggers_of_mine_failed(hands):
    page = hands.page
    hands.press("g", "t")
    hands.title("Triggers")
    hands.go(page.get_by_label("By", exact=True))
    hands.type("admin")
    hands.press("Enter")
    hands.open(page.get_by_role("group", name="Filter by state").get_by_role("button", name="failed"))
    expect(page.get_by_role("link", name="Upgrade openssl").first).to_be_visible()
    expect(page.get_by_role("link", name="Backup of databases")).to_have_count(0)


def test_which_servers_are_the_canaries_of_the_backup_and_how_far_is_it(hands):
    page = hands.page
    hands.open(page.get_by_role("link", name="triggers in progress"))
    hands.open(page.get_by_role("link", name="Backup of databases"))
    hands.title("Backup of databases")
    expect(page.get_by_text("0 of 11 runs have ended")).to_be_visible()
    expect(page.get_by_text("Framed cells are canaries")).to_be_visible()
    expect(
        page.get_by_role("group", name="Filter by state").get_by_role("button", name="in progress 2")
    ).to_be_visible()


def test_stop_the_backup(hands):
    page = hands.page
    hands.press("g", "t")
    hands.open(page.get_by_role("link", name="Backup of databases"))
    hands.title("Backup of databases")
    hands.open(page.get_by_role("button", name="Cancel"))
    hands.open(page.get_by_role("dialog").get_by_role("button", name="Cancel"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".facts")).to_contain_text("cancelled")


def test_suspend_the_monitoring(hands):
    page = hands.page
    hands.press("g", "s")
    hands.open(page.get_by_role("link", name="monitoring"))
    hands.title("monitoring")
    hands.open(page.get_by_role("button", name="Suspend"))
    hands.open(page.get_by_role("dialog").get_by_role("button", name="Suspend"))
    expect(page.locator(".facts").first).to_contain_text("suspend complete")
