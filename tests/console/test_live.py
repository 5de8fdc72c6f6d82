"""Pages that change while they are open: through the end of the server, of the session, and of the run."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.accounts import create_project

from .conftest import HOSTILE, WAITING, Site, sign_in_again


@pytest.fixture
def script(site: Site, tmp_path) -> str:
    return WAITING.format(folder=tmp_path, hostile=HOSTILE)


def test_output_appears_while_the_run_writes_it(open_window, site, script, tmp_path):
    trigger = site.trigger(script)
    page = open_window(f"runs/{site.run_of(trigger)}").page
    expect(page.locator(".line-text")).to_have_text([f"begun with {HOSTILE}"])
    expect(page.locator(".facts")).to_contain_text("running")
    (tmp_path / "go").touch()
    expect(page.locator(".line-text")).to_have_count(3)
    expect(page.locator(".line .fg-red")).to_have_text("red")
    expect(page.locator(".facts .state").first).to_contain_text("complete")


def test_a_page_survives_the_end_of_the_server(open_window, site, script, tmp_path):
    trigger = site.trigger(script)
    page = open_window(f"runs/{site.run_of(trigger)}").page
    expect(page.locator(".line-text")).to_have_count(1)
    site.stoker.kill9()
    expect(page.locator(".banner").first).to_be_visible()
    expect(page.locator(".stale").first).to_be_visible()
    expect(page.locator(".line-text")).to_have_count(1)
    (tmp_path / "go").touch()
    site.stoker.restart()
    expect(page.locator(".line-text")).to_have_count(3)
    assert sorted(page.locator(".line-text").all_inner_texts()) == sorted([f"begun with {HOSTILE}", "red end", "oops"])
    expect(page.locator(".banner")).to_have_count(0)


def test_a_trigger_changes_while_it_runs(open_window, site, script, tmp_path):
    trigger = site.trigger(script)
    page = open_window(f"triggers/{trigger['id']}").page
    progress = page.get_by_role("progressbar")
    expect(progress).to_have_attribute("aria-valuenow", "0")
    expect(page.locator("tbody tr")).to_have_count(4)
    (tmp_path / "go").touch()
    expect(progress).to_have_attribute("aria-valuenow", "4")
    expect(page.locator("tbody .state.good")).to_have_count(4)
    expect(page.get_by_role("button", name="Cancel")).to_have_count(0)


def test_a_user_signs_in_again_over_the_page(open_window, site):
    window = open_window("servers?sort=Name", account=site.member)
    page = window.page
    expect(page.locator("tbody tr").first).to_be_visible()
    page.get_by_label("Name", exact=True).fill("typed, not sent")
    site.end_session(site.member)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"Sign in again as {site.member.name}")
    dialog.get_by_label("Password").fill("wrong")
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog.get_by_role("alert")).to_have_text("The password is wrong.")
    sign_in_again(page)
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed, not sent")
    page.get_by_label("Name", exact=True).fill("web")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page.locator(".banner")).to_have_count(0)


def test_two_projects_in_two_tabs_do_not_mix(open_window, site):
    other = create_project(site.stoker)
    path = f"/identity/v3/projects/{other}/users/{site.member.user_id}/roles/reader"
    assert site.stoker.request("PUT", path, headers={"X-Auth-Token": site.stoker.token}).status == 204
    first = open_window("servers", account=site.member).page
    second = first.context.new_page()
    second.goto(first.url.replace(site.stoker.project, other))
    expect(second.locator(".empty")).to_contain_text("There are no servers yet")
    expect(second.locator(".account")).to_contain_text("(reader)")
    first.reload()
    expect(first.locator("tbody tr")).to_have_count(5)
    first.locator(".account a").click()
    expect(first.get_by_role("listitem")).to_have_count(2)
    first.get_by_role("link", name="default").click()
    expect(first).to_have_url(re.compile(site.stoker.project))
