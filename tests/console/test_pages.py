"""Pages in a real browser: texts of users, filters in the URL, keys, and the size of the first load."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from .conftest import HOSTILE, is_loaded, problems_of


@pytest.fixture(scope="module")
def places(site) -> dict[str, str]:
    """The paths of the pages that show one object."""
    trigger = site.trigger(f"#!/bin/sh\necho '{HOSTILE}'\nprintf '\\033[32mgreen\\033[0m\\n'\nexit 1", HOSTILE)
    ended = site.ended(trigger)
    assert (ended["total"], ended["failed"]) == (4, 4)
    return {
        "TRIGGER": f"triggers/{trigger['id']}",
        "RUN": f"runs/{site.run_of(trigger)}",
    }


def test_the_sign_in_page_is_accessible(site, chromium, axe):
    for scheme in ("light", "dark"):
        context = chromium.new_context(color_scheme=scheme)
        page = context.new_page()
        page.goto(site.home)
        assert problems_of(page, axe) == []
        page.get_by_label("User name").fill(HOSTILE)
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("wrong")
        assert problems_of(page, axe) == []
        assert page.get_by_label("User name").input_value() == HOSTILE
        context.close()


def test_a_failed_run_says_why_at_once(open_window, site):
    window = open_window(f"stacks/shop/{site.stack}", viewport={"width": 1280, "height": 800})
    page = window.page
    page.get_by_role("link", name="migrate").click()
    expect(page.locator(".last-error")).to_have_text("no space left")
    assert page.locator(".last-error").bounding_box()["y"] < 600
    expect(page.locator(".facts").first).to_contain_text("Exit code3")


def test_each_number_of_the_overview_is_that_of_its_list(open_window):
    page = open_window().page
    expect(page.locator(".tile").first).to_be_visible()
    tiles = [
        (tile.get_attribute("href"), tile.locator(".tile-count").inner_text()) for tile in page.locator(".tile").all()
    ]
    assert len(tiles) == 11
    for href, text in tiles:
        page.goto(page.url.partition("/console/")[0] + str(href))
        is_loaded(page)
        expect(page.locator("tbody tr")).to_have_count(int(re.sub(r"\D", "", text)))


def test_filters_are_in_the_url(open_window, site):
    page = open_window("servers").page
    page.get_by_label("Name").fill("web")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(4)
    page.get_by_role("button", name="Name").click()
    expect(page.locator("tbody tr").first).to_contain_text("web0")
    page.get_by_role("button", name="Name").click()
    expect(page.locator("tbody tr").first).to_contain_text("web3")
    page.reload()
    expect(page.locator("tbody tr").first).to_contain_text("web3")
    page.get_by_label("Selector").fill("hostname=absent")
    page.keyboard.press("Enter")
    expect(page.locator(".empty")).to_have_text("No server matches these filters.")
    page.get_by_label("Selector").fill("hostname !!")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("selector")


def test_lines_of_the_output_are_chosen_in_the_url(open_window, places):
    page = open_window(places["RUN"]).page
    page.get_by_role("button", name="Line 1", exact=True).click()
    page.get_by_role("button", name="Line 2", exact=True).click(modifiers=["Shift"])
    assert page.url.endswith(f"?lines=stdout%400-{len(HOSTILE) + 1}")
    page.reload()
    expect(page.locator(".line.chosen")).to_have_count(2)
    page.get_by_label("Search").fill("GREEN")
    expect(page.locator(".line.hit")).to_have_count(1)
    expect(page.get_by_text("1 of 1 lines")).to_be_visible()


def test_the_palette_opens_any_object_page_and_action(open_window, site, places):
    page = open_window("triggers").page
    for text, heading in (
        ("shop", "shop"),
        ("web2", "web2"),
        ("overv", "Overview"),
        ("run a command", "Run a command"),
        ("enroll", "Enroll servers"),
    ):
        page.keyboard.press("Control+k")
        search = page.get_by_role("dialog").get_by_role("combobox")
        search.press_sequentially(text)
        expect(page.get_by_role("option").first).to_contain_text(re.compile(text, re.IGNORECASE))
        expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("Enter opens")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.get_by_role("button", name="Go to …").click()
    page.get_by_role("dialog").get_by_role("combobox").fill(HOSTILE[:8])
    expect(page.get_by_role("option").filter(has_text=re.compile("^Trigger"))).to_contain_text(HOSTILE)
    expect(page.get_by_role("option").filter(has_text=re.compile("^Run")).first).to_contain_text(" on web")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(HOSTILE)


def test_keys_move_in_lists_and_go_back(open_window):
    page = open_window("servers?name=web").page
    expect(page.locator("tbody tr")).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="web1")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name="web2")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("web1")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", level=1)).to_have_text("Servers")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Ctrl-K")
    expect(page.get_by_role("dialog")).to_contain_text("to the next and the previous failure")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_arrows_follow_the_edges_of_the_graph(open_window, site):
    page = open_window(f"stacks/shop/{site.stack}?tab=graph").page
    node = page.locator("[data-name=prepare]")
    node.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.name") == "migrate"
    assert "failed, after" in str(page.locator("[data-name=migrate]").get_attribute("aria-label"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("shop/migrate")


def test_the_first_load_is_small(open_window):
    window = open_window()
    entries = window.page.evaluate(
        "performance.getEntriesByType('resource').map(entry => [entry.name, entry.encodedBodySize])"
    )
    sizes = [entry for entry in entries if "/assets/" in entry[0]]
    assert len(sizes) <= 3  # two scripts, at the same time: the second one has what pages that load later share
    assert 10_000 < sum(size for _, size in sizes) < 70_000, json.dumps(sizes)
