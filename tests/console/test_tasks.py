"""
The pages of a busy site: each is accessible, fits, and offers readers no changes; and tasks of administrators.

Each task is done with the keyboard alone, by somebody who knows only what the pages show: the names and roles of
things, and the keys that the dialog of keys lists.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from support.accounts import create_account
from support.busy_site import BusySite, busy_site
from support.pictures import STEPS, pages_of

from .conftest import is_loaded, problems_of

#: Key presses after which somebody gives up to reach something.
_PATIENCE = 80


@pytest.fixture(scope="module")
def site(built_console, tmp_path_factory) -> Iterator[BusySite]:
    with busy_site(tmp_path_factory.mktemp("busy")) as site:
        yield site


def paths_of(site: BusySite) -> dict[str, str]:
    """Return the paths of the pages with pictures, and of further parts of them."""
    pages = pages_of(site)
    tabs = {tab: f"{pages['stack']}?tab={tab}" for tab in ("events", "outputs", "snapshots")}
    return {
        **pages,
        **tabs,
        "two streams": f"{pages['run']}?stream=apart&wrap=1&search=error&regex=1",
        "selected": "servers?chosen=all&selector=hostname%20exists",
        "run-config": "run?what=config",
        "schedule": f"{pages['schedules']}?schedule={site.schedule}",
        "user": f"{pages['users']}?user={site.user}",
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_is_accessible_and_fits(open_window, site, axe, scheme, width):
    page = open_window(color_scheme=scheme, viewport={"width": width, "height": 900}).page
    home = page.url
    for name, path in paths_of(site).items():
        page.goto(home + path)
        is_loaded(page)
        if name in STEPS:
            STEPS[name](page)
        assert problems_of(page, axe) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} scrolls sideways"


def test_readers_see_no_buttons_for_changes(open_window, site):
    page = open_window(account=create_account(site.stoker, "reader")).page
    home = page.url
    for path in paths_of(site).values():
        page.goto(home + path)
        is_loaded(page)
        expect(page.locator("main .actions button:not(.view), main .actions a")).to_have_count(0)


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

    def jump(self, key: str, title: str) -> None:
        """Open the page that a key after g opens."""
        self.press("g", key)
        self.title(title)

    def link(self, name: str, title: str | None = None) -> None:
        """Open a link, and wait for the page with its name, or this title."""
        self.go(self.page.get_by_role("link", name=name, exact=title is None))
        self.press("Enter")
        self.title(title or name)

    def button(self, name: str) -> None:
        button = self.page.get_by_role("button", name=name)
        expect(button).to_be_enabled()
        self.go(button)
        self.press("Enter")

    def confirm(self, name: str) -> None:
        """Press a button, and the one of the dialog that it opens."""
        self.button(name)
        self.go(self.page.get_by_role("dialog").get_by_role("button", name=name))
        self.press("Enter")

    def fill(self, locator: Locator, text: str) -> None:
        self.go(locator)
        self.type(text)

    def title(self, text: str) -> None:
        """Wait for the page with this title and its content."""
        expect(self.page.get_by_role("heading", level=1)).to_have_text(text)
        is_loaded(self.page)


@pytest.fixture
def hands(open_window) -> Hands:
    page = open_window().page
    is_loaded(page)
    return Hands(page)


def test_which_deployment_failed_on_web3_and_what_changed_since_it_worked(hands):
    page = hands.page
    hands.jump("v", "Servers")
    hands.press("/")
    hands.type("web3")
    hands.press("Enter")
    expect(page.get_by_role("link", name="web4", exact=True)).to_have_count(0)
    hands.link("web3")
    hands.link("shop/shop3")
    expect(page.get_by_text('relation "orders_archive" already exists').first).to_be_visible()
    hands.button("What changed since it last worked")
    comparison = page.get_by_role("region", name="Run 2 beside run 1")
    expect(comparison.get_by_role("row", name="Input version")).to_contain_text("2.3.02.4.1")
    expect(comparison).to_contain_text("+ checking the migration of schema 41")
    assert hands.presses < 60


def test_which_servers_differ_from_the_others_after_the_upgrade(hands):
    hands.jump("t", "Triggers")
    hands.go(hands.page.get_by_role("link", name="Upgrade openssl").last)  # another test may have retried it
    hands.press("Enter")
    hands.title("Upgrade openssl")
    groups = hands.page.get_by_role("region", name="Equal output").get_by_role("listitem")
    expect(groups).to_have_count(3)
    expect(groups.nth(0)).to_contain_text("6 servers")
    expect(groups.nth(0)).to_contain_text("web[0-2,4-5,7]")
    expect(groups.nth(1)).to_contain_text("+ A restart of nginx is needed")
    expect(groups.nth(2)).to_contain_text("exit code 100")
    assert hands.presses < 30


def test_approve_the_waiting_server(hands):
    hands.link("waiting for approval", "Servers")
    hands.link("web-lisbon-41")
    hands.confirm("Approve")
    expect(hands.page.get_by_role("dialog")).to_have_count(0)
    expect(hands.page.get_by_role("button", name="Approve")).to_have_count(0)
    assert hands.presses < 80


def test_find_the_line_that_explains_the_failure_and_link_to_it(hands):
    page = hands.page
    hands.jump("s", "Stacks")
    for name, title in (("shop", "shop"), ("shop3", "shop/shop3")):
        expect(page.get_by_role("link", name=name)).to_be_visible()
        hands.press("n", "Enter")
        hands.title(title)
    expect(page.get_by_text("16 lines")).to_be_visible()
    hands.press("/")
    hands.type("error:")
    expect(page.get_by_text("1 of 1 lines")).to_be_visible()
    assert "search=error" in page.url
    hands.press("Enter")
    expect(page.locator(".line.current")).to_contain_text("orders_archive")


def test_retry_the_upgrade_where_it_failed(hands):
    page = hands.page
    hands.jump("t", "Triggers")
    hands.go(page.get_by_role("link", name="Upgrade openssl").last)
    hands.press("Enter")
    hands.title("Upgrade openssl")
    before = page.url
    hands.confirm("Retry failed")
    page.wait_for_url(lambda url: url != before)
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuemax", "1")
    expect(page.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "1")


def test_run_the_backup_on_all_databases_but_the_canary_first(hands):
    page = hands.page
    hands.jump("f", "Configs")
    hands.link("Check of databases")
    hands.link("Run", "Run a config")
    hands.fill(page.get_by_placeholder("web1 web2 db*"), "db*")
    hands.press("Tab")
    expect(page.get_by_label("Chosen servers")).to_contain_text("db[0-2]")
    hands.fill(page.get_by_label("Canary"), "1")
    hands.button("Run on 3 servers")
    hands.title("Check of databases")
    expect(page.get_by_text("of 3 runs have ended")).to_be_visible()  # they wait for the databases' window
    expect(page.get_by_text("Framed cells are canaries")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("Canary1")
    assert hands.presses < 80


def test_create_a_stack_from_an_example(hands):
    hands.jump("s", "Stacks")
    hands.link("New stack")
    example = hands.page.get_by_label("An example, or an entry of the catalog")
    expect(example.get_by_role("option", name="three-tier")).to_have_count(1)
    hands.fill(example, "t")  # one letter: a browser forgets the letters of a slow typist
    hands.press("Tab")
    hands.press("Escape")  # the key that leaves the editor with Tab
    for name in ("Next: parameters", "Next: review", "Create three-tier"):
        hands.button(name)
    hands.title("three-tier")
    expect(hands.page.locator(".facts").first).to_contain_text("create complete")
    assert hands.presses < 80


def test_make_a_schedule_run_every_night_within_the_maintenance_window(hands):
    page = hands.page
    hands.jump("c", "Schedules")
    hands.button("New schedule")
    form = page.get_by_role("dialog")
    hands.fill(form.get_by_label("Name", exact=True), "Nightly check")
    config = form.get_by_role("combobox", name="Config")
    expect(config.get_by_role("option", name="Check of databases")).to_have_count(1)
    hands.fill(config, "C")
    expect(form).to_contain_text("There are no inputs")
    hands.fill(form.get_by_label("or by name"), "db0")
    hands.go(form.get_by_label("Cron"))
    expect(form).to_contain_text("every day at 02:00")
    hands.go(form.get_by_label("Each server waits for its maintenance window"))
    hands.press("Space")
    hands.go(form.get_by_role("button", name="Create"))
    hands.press("Enter")
    times = page.get_by_role("group", name="Next times").get_by_role("row", name="Nightly check")
    expect(times.first).to_contain_text("1 until")
    assert hands.presses < 60


def test_stop_the_backup(hands):
    page = hands.page
    hands.jump("t", "Triggers")
    hands.link("Backup of databases")
    hands.button("Cancel")
    hands.go(page.get_by_role("dialog").get_by_role("button", name="Close"))
    hands.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".facts")).not_to_contain_text("cancelled")
    hands.confirm("Cancel")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".facts")).to_contain_text("cancelled")
