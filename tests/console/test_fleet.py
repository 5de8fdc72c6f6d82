"""The pages of the menu "More": what they show, and what administrators, members and readers can do on each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .conftest import HOSTILE, Site
from .test_pages import axe as axe  # noqa: PLC0414  # a fixture
from .test_pages import is_loaded, problems_of

PAGES = ["drift"]
CONTENT = "Managed by Stoker\n"


@pytest.fixture(scope="module")
def fleet(site: Site) -> Site:
    """The site with a file on two servers that somebody has changed."""
    prepare(site)
    return site


def prepare(site: Site) -> None:
    """Let two servers drift."""
    ids = [deploy_file(site, server, motd(site, server)) for server in site.servers[:2]]
    site.stoker.until(lambda: all(deployment(site, id)["status"] == "COMPLETE" for id in ids))
    for server in site.servers[:2]:
        change_file(site, server)


def motd(site: Site, server: dict[str, Any]) -> Path:
    return site.folder / f"motd of {server['name']}"


def deploy_file(site: Site, server: dict[str, Any], path: Path) -> str:
    body = {
        "name": "message of the day",
        "group": "file",
        "config": {"path": str(path), "content": CONTENT, "mode": "0644"},
        "inputs": [{"name": "audience", "type": "String", "default": HOSTILE, "description": "Who reads it"}],
    }
    config = site.stoker.heat("POST", "/software_configs", body).body["software_config"]["id"]
    wanted = {"config_id": config, "server_id": server["id"], "signal_transport": "STOKER_SIGNAL"}
    answer = site.stoker.heat("POST", "/software_deployments", wanted)
    assert answer.status == 200, answer.raw
    return str(answer.body["software_deployment"]["id"])


def deployment(site: Site, id: str) -> dict[str, Any]:
    shown: dict[str, Any] = site.stoker.heat("GET", f"/software_deployments/{id}").body["software_deployment"]
    return shown


def change_file(site: Site, server: dict[str, Any]) -> None:
    """Change the file of a server, and wait until its agent has noticed."""
    motd(site, server).write_text(f"changed by {HOSTILE}\n")
    site.stoker.heat("POST", "/checks", {"servers": [server["id"]]})
    site.stoker.until(
        lambda: site.stoker.heat("GET", f"/checks?state=DRIFTED&server={server['id']}").body["checks"] != []
    )


def confirm(page: Page, label: str) -> None:
    """Press a button, and the one of the question that follows."""
    page.get_by_role("button", name=label, exact=True).first.click()
    page.get_by_role("dialog").get_by_role("button", name=label, exact=True).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_is_accessible_and_fits(open_window, fleet, axe, scheme, width):
    page = open_window(color_scheme=scheme, viewport={"width": width, "height": 900}).page
    home = page.url
    for name in PAGES:
        page.goto(home + name)
        is_loaded(page)
        assert problems_of(page, axe) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} scrolls sideways"


def test_a_reader_sees_the_pages_without_buttons_for_changes(open_window, fleet):
    page = open_window(account=fleet.reader).page
    home = page.url
    for name in PAGES:
        page.goto(home + name)
        is_loaded(page)
        expect(page.locator("main .actions button")).to_have_count(0)


def test_the_menu_leads_to_the_other_pages_without_a_mouse(open_window, fleet):
    page = open_window(viewport={"width": 1280, "height": 900}).page
    more = page.get_by_role("button", name="More")
    more.focus()
    page.keyboard.press("Enter")
    expect(more).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Drift").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Drift")
    expect(page.get_by_role("button", name="More: Drift")).to_have_attribute("aria-expanded", "false")
    page.set_viewport_size({"width": 2560, "height": 1200})
    expect(page.get_by_role("link", name="Drift")).to_be_visible()


def test_drift_is_shown_with_its_difference_and_repaired(open_window, fleet):
    first, second = fleet.servers[:2]
    page = open_window(f"drift?state=DRIFTED&server={first['name']}", account=fleet.member).page
    row = page.locator(".folds > details")
    expect(row).to_have_count(1)
    row.locator("summary").first.click()
    expect(row.locator(".removed").last).to_have_text(f"-changed by {HOSTILE}")
    expect(row.locator(".added").last).to_have_text("+Managed by Stoker")
    row.get_by_role("button", name="Repair").click()
    page.get_by_role("dialog").get_by_role("button", name="Repair").click()
    expect(page.locator(".empty")).to_contain_text("No deployment is in this state")
    fleet.stoker.until(lambda: motd(fleet, first).read_text() == CONTENT)
    page.get_by_label("Server").fill(second["name"])
    page.keyboard.press("Enter")
    expect(page.locator(".folds > details")).to_have_count(1)
    motd(fleet, second).write_text(CONTENT)
    confirm(page, "Check again")
    expect(page.locator(".empty")).to_contain_text("No deployment is in this state")
    page.get_by_role("button", name="in sync").click()
    expect(page.locator(".folds > details")).to_contain_text("in sync")
    change_file(fleet, first)
    change_file(fleet, second)
