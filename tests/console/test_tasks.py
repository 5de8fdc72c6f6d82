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
    hands.press("/")
    hands.type("web3")
    hands.press("Enter")
    expect(page.get_by_role("link", name="web4", exact=True)).to_have_count(0)
    hands.open(page.get_by_role("link", name="web3", exact=True))
    hands.title("web3")
    expect(page.get_by_role("link", name="shop/shop3")).to_be_visible()
    hands.open(page.get_by_role("link", name="shop/shop3"))
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
    expect(page.get_by_role("link", name="shop")).to_be_visible()
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


def test_run_the_backup_on_all_databases_but_the_canary_first(hands):
    page = hands.page
    hands.press("g", "f")
    hands.title("Configs")
    hands.open(page.get_by_role("link", name="Check of databases"))
    hands.title("Check of databases")
    hands.open(page.get_by_role("link", name="Run", exact=True))
    hands.title("Run a config")
    hands.go(page.get_by_placeholder("web1 web2 db*"))
    hands.type("db*")
    hands.press("Tab")
    expect(page.get_by_label("Chosen servers")).to_contain_text("db[0-2]")
    hands.go(page.get_by_label("Canary"))
    hands.type("1")
    hands.open(page.get_by_role("button", name="Run on 3 servers"))
    hands.title("Check of databases")
    expect(page.get_by_text("of 3 runs have ended")).to_be_visible()  # they wait for the databases' window
    expect(page.get_by_text("Framed cells are canaries")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("Canary1")
    assert hands.presses < 80


def test_create_a_stack_from_an_example(hands):
    page = hands.page
    hands.press("g", "s")
    hands.title("Stacks")
    hands.open(page.get_by_role("link", name="New stack"))
    hands.title("New stack")
    hands.go(page.get_by_label("An example, or an entry of the catalog"))
    hands.type("t")  # one letter: a browser forgets the letters of a slow typist
    hands.press("Tab")
    hands.press("Escape")  # the key that leaves the editor with Tab
    hands.open(page.get_by_role("button", name="Next: parameters"))
    hands.open(page.get_by_role("button", name="Next: review"))
    hands.open(page.get_by_role("button", name="Create three-tier"))
    hands.title("three-tier")
    expect(page.locator(".facts").first).to_contain_text("create complete")
    assert hands.presses < 80


def test_make_a_schedule_run_every_night_within_the_maintenance_window(hands):
    page = hands.page
    hands.press("g", "c")
    hands.title("Schedules")
    hands.open(page.get_by_role("button", name="New schedule"))
    form = page.get_by_role("dialog")
    hands.go(form.get_by_label("Name", exact=True))
    hands.type("Nightly check")
    hands.go(form.get_by_role("combobox", name="Config"))
    hands.type("C")  # the check of the databases
    hands.go(form.get_by_label("or by name"))
    hands.type("db0")
    hands.go(form.get_by_label("Cron"))
    expect(form).to_contain_text("every day at 02:00")
    hands.go(form.get_by_label("Each server waits for its maintenance window"))
    hands.press("Space")
    hands.open(form.get_by_role("button", name="Create"))
    times = page.get_by_role("group", name="Next times").get_by_role("row", name="Nightly check")
    expect(times.first).to_contain_text("1 until")
    assert hands.presses < 60


def test_enroll_a_machine(hands):
    page = hands.page
    hands.press("g", "v")
    hands.title("Servers")
    hands.open(page.get_by_role("button", name="Enroll servers"))
    hands.title("Enroll servers")
    hands.go(page.get_by_label("Name", exact=True))
    hands.type("web-lisbon-42")
    hands.press("Enter")
    expect(page.get_by_text("Paste this line")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="Waiting for the machine")).to_be_visible()
    hands.open(page.get_by_role("button", name="Copy"))
    assert hands.presses < 60


def test_find_who_changed_the_policy_of_web3(hands):
    page = hands.page
    hands.press("g", "a")
    hands.title("Audit")
    hands.go(page.get_by_label("Action begins with"))
    hands.type("change policy")
    hands.press("Tab")
    hands.type("web3")
    hands.press("Enter")
    rows = page.get_by_role("group", name="Audit").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("ida")
    assert hands.presses < 50


def test_jump_to_a_server(hands):
    page = hands.page
    hands.press("Control+k")
    hands.type("web6")
    expect(page.get_by_role("option", name="Server web6")).to_be_visible()
    hands.press("Enter")
    hands.title("web6")
    assert hands.presses < 10


def test_stop_the_backup(hands):
    page = hands.page
    hands.press("g", "t")
    hands.open(page.get_by_role("link", name="Backup of databases"))
    hands.title("Backup of databases")
    hands.open(page.get_by_role("button", name="Cancel"))
    hands.open(page.get_by_role("dialog").get_by_role("button", name="Cancel"))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".facts")).to_contain_text("cancelled")
