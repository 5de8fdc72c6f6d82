"""The pages of the menu "More": what they show, and what administrators, members and readers can do on each."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from support.accounts import PASSWORD
from support.agent_protocol import deploy, shown

from .conftest import HOSTILE, Site, confirm

CONTENT = "Managed by Stoker\n"


@pytest.fixture(scope="module")
def fleet(site: Site) -> Site:
    """The site with a file on two servers that somebody has changed, and schedules, one of which waits for a window."""
    window = {"cron": "0 22 * * *", "minutes": 90, "timezone": "UTC"}
    for server in site.servers[2:4]:
        policy = {"policy": {"maintenance_windows": [window]}}
        assert site.stoker.heat("PATCH", f"/servers/{server['id']}", policy).status == 200
    create_schedule(site, "nightly backup", cron="30 2 * * *", timezone="Europe/Vienna")
    create_schedule(site, f"reports {HOSTILE}", cron="0 12 * * 1-5")
    create_schedule(site, "log rotation", cron="*/30 * * * *")
    deployed = [deploy_file(site, server, motd(site, server)) for server in site.servers[:2]]
    site.stoker.until(lambda: all(shown(site.stoker, each)["status"] == "COMPLETE" for each in deployed))
    for server in site.servers[:2]:
        change_file(site, server)
    return site


def create_schedule(site: Site, name: str, **times: Any) -> None:
    config = site.stoker.create_config("#!/bin/sh\necho saved", name="backup")
    trigger = {"config_id": config, "servers": [server["name"] for server in site.servers[:4]]}
    answer = site.stoker.heat("POST", "/software_schedules", {"name": name, "trigger": trigger, **times})
    assert answer.status == 201, answer.raw


def schedule_of(site: Site, name: str) -> dict[str, Any]:
    listed = site.stoker.heat("GET", "/software_schedules").body["software_schedules"]
    return next(schedule for schedule in listed if schedule["name"] == name)


def motd(site: Site, server: dict[str, Any]) -> Path:
    return site.folder / f"motd of {server['name']}"


def deploy_file(site: Site, server: dict[str, Any], path: Path) -> dict[str, Any]:
    content = {"path": str(path), "content": CONTENT, "mode": "0644"}
    inputs = [{"name": "audience", "type": "String", "default": HOSTILE, "description": "Who reads it"}]
    return deploy(site.stoker, server["id"], content, name="message of the day", group="file", inputs=inputs)


def change_file(site: Site, server: dict[str, Any]) -> None:
    """Change the file of a server, and wait until its agent has noticed."""
    motd(site, server).write_text(f"changed by {HOSTILE}\n")
    site.stoker.heat("POST", "/checks", {"servers": [server["id"]]})
    site.stoker.until(
        lambda: site.stoker.heat("GET", f"/checks?state=DRIFTED&server={server['id']}").body["checks"] != []
    )


def test_the_menu_leads_to_the_other_pages_without_a_mouse(open_window, fleet):
    page = open_window(viewport={"width": 1280, "height": 900}).page
    expect(page.get_by_role("img", name=re.compile("^The next day: "))).to_be_visible()
    more = page.get_by_role("button", name="More")
    more.focus()
    page.keyboard.press("Enter")
    expect(more).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Escape")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(more).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Drift", exact=True).press("Enter")
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
    expect(row.locator(".removed").last).to_have_text(f"- changed by {HOSTILE}")
    expect(row.locator(".added").last).to_have_text("+ Managed by Stoker")
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


def test_a_week_of_schedules_shows_windows_and_what_waits_for_them(open_window, fleet):
    page = open_window("schedules?from=2035-03-23", timezone_id="Europe/Vienna").page
    rows = page.locator(".week-row")
    expect(rows).to_have_count(3)
    backup = rows.filter(has_text="nightly backup")
    expect(backup.get_by_role("img")).to_have_attribute(
        "aria-label", "nightly backup, every day at 02:30: 7 ahead, 7 of which wait"
    )
    expect(backup.locator(".week-wait")).to_have_count(7)
    expect(backup.locator(".week-wait").first).to_have_attribute("title", "Waits until Fri 23, 23:00")
    expect(backup.locator(".week-mark").first).to_have_attribute(
        "title", "Fri 23, 02:30: 4 servers, 2 wait until Fri 23, 23:00"
    )
    expect(backup.locator(".week-window")).to_have_count(7)  # the first one began the day before
    expect(page.locator(".week-key")).to_contain_text("Sun 25: the clock goes forward by 1 h")
    expect(page.get_by_role("heading", level=2).first).to_have_text(re.compile("^March 23.–.29, 2035$"))
    expect(page.locator(".week-now")).to_have_count(1)  # that of the key: the week is in the future
    page.get_by_role("button", name="From today").click()
    expect(page.locator(".week-track .week-now")).to_have_count(3)
    dense = rows.filter(has_text="log rotation")
    expect(dense.locator(".week-mark").first).to_have_text(re.compile("^(9|10)$"))  # times each half hour are counted
    assert dense.locator(".week-mark").count() < 40


def test_a_schedule_is_created_changed_run_and_deleted(open_window, fleet):
    fleet.stoker.create_config(name="sync", inputs=[{"name": "target"}])
    page = open_window("schedules", account=fleet.member, timezone_id="Europe/Vienna").page
    page.get_by_role("button", name="New schedule").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("hourly sync")
    dialog.locator("[name=config_id]").select_option(label="sync (script)")
    dialog.get_by_label(re.compile("^target")).fill("s3")
    dialog.get_by_label("Cron").fill("0 */6 * * *")
    expect(dialog).to_contain_text("every 6 hours")
    dialog.get_by_label("or by name").fill("absent")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("absent")
    dialog.get_by_label("or by name").fill("web0, web1")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_have_count(0)
    created = schedule_of(fleet, "hourly sync")
    assert (created["cron"], created["timezone"], created["trigger"]["servers"]) == (
        *("0 */6 * * *", "Europe/Vienna"),
        ["web0", "web1"],
    )
    assert created["trigger"]["input_values"] == {"target": "s3"}
    page.locator(".week-row").get_by_role("button", name="hourly sync").click()
    assert f"schedule={created['id']}" in page.url
    card = page.get_by_role("region", name="hourly sync")
    expect(card.get_by_role("link", name="sync on 2 servers")).to_be_visible()
    card.get_by_role("button", name="Edit").click()
    dialog.get_by_label("Cron").fill("0 5 * * sun")
    dialog.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("on Sunday at 05:00")
    confirm(page, "Pause")
    expect(card).to_contain_text("paused")
    assert not schedule_of(fleet, "hourly sync")["enabled"]
    confirm(page, "Resume")
    expect(card.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    dialog.get_by_role("button", name="Run now").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("_TRIGGER")
    page.go_back()
    confirm(page, "Delete")
    expect(page.locator(".week-row")).to_have_count(3)


def test_a_config_is_shown_with_its_versions_and_who_runs_it(open_window, fleet):
    page = open_window("configs?name=message", account=fleet.member).page
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("2")
    page.get_by_role("link", name="message of the day").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("message of the day")
    expect(page.locator(".numbered-line").first).to_have_text("{")
    expect(page.get_by_role("region", name="Inputs")).to_contain_text(HOSTILE)
    expect(page.get_by_role("region", name="Versions").get_by_role("listitem")).to_have_count(2)
    expect(page.get_by_role("region", name="Deployments").locator("tbody tr")).to_have_count(2)
    page.goto(
        page.url.partition("configs/")[0] + f"configs/{schedule_of(fleet, 'nightly backup')['trigger']['config_id']}"
    )
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("is used by the schedule")


def test_an_entry_of_the_catalog_says_what_it_needs(open_window, fleet):
    page = open_window("catalog").page
    page.get_by_label("Name or description").fill("nginx")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="nginx/1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("nginx/1")
    expect(page.get_by_role("region", name="Inputs").get_by_role("listitem").first).to_be_visible()
    expect(page.locator(".numbered-line").first).to_contain_text("stoker_catalog_version")


def test_the_audit_log_is_filtered_in_the_url_and_downloaded(open_window, fleet):
    server = fleet.servers[2]["name"]
    page = open_window(f"audit?object={server}&action=change").page
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("change policy")
    with page.expect_download() as downloads:
        page.get_by_role("button", name="Download").click()
    (entry,) = json.loads(downloads.value.path().read_text())
    assert (entry["server_name"], entry["actor"]) == (server, "admin")
    page.get_by_label("Until").fill("2020-01-01")
    page.keyboard.press("Enter")
    expect(page.locator(".empty")).to_have_text("No entry matches these filters.")
    page.get_by_label("Until").fill("yesterday")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("until")
    page.get_by_label("Until").fill("")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="users, projects").click()
    expect(page.locator(".empty")).to_be_visible()
    assert "site=1" in page.url


def test_a_relay_is_created_with_a_key_that_is_shown_once(open_window, fleet):
    page = open_window("relays", account=fleet.member).page
    page.get_by_role("button", name="New relay").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("site1")
    dialog.get_by_label("URL").fill("not a url")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no URL of a relay")
    dialog.get_by_label("URL").fill("https://relay.site1.example:8005")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.locator(".secret")).to_be_visible()
    (relay,) = fleet.stoker.heat("GET", "/relays").body["relays"]
    expect(dialog.locator(".secret")).to_contain_text(relay["id"])
    dialog.get_by_role("button", name="I have copied it").click()
    expect(page.locator("tbody tr")).to_contain_text("never seen")
    confirm(page, "Delete")
    expect(page.locator(".empty")).to_be_visible()


def test_settings_have_sources_and_no_secrets(open_window, fleet):
    page = open_window("settings?name=port").page
    row = page.locator(".settings > div").filter(has=page.get_by_text("port", exact=True))
    expect(row).to_contain_text(f"{fleet.stoker.port} from --port; the default is 8004")
    page = open_window("settings", account=fleet.member).page
    expect(page.locator("main .empty")).to_contain_text("Only administrators")


def test_a_user_is_created_granted_roles_and_disabled(open_window, fleet):
    page = open_window("users").page
    page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(HOSTILE)
    dialog.get_by_label("Password").fill("short")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog.get_by_role("alert")).to_contain_text("characters")
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Create").click()
    card = page.get_by_role("region", name=HOSTILE)
    expect(card).to_contain_text("member in default")
    card.get_by_role("button", name="Grant a role").click()
    dialog.get_by_label("Role").select_option("reader")
    dialog.get_by_role("button", name="Grant", exact=True).click()
    expect(card.get_by_role("listitem")).to_have_count(2)
    card.get_by_role("listitem").filter(has_text="member").get_by_role("button", name="Revoke").click()
    dialog.get_by_role("button", name="Revoke").click()
    expect(card.get_by_role("listitem")).to_have_text(["reader in defaultRevoke"])
    confirm(page, "Disable")
    expect(page.locator("tbody tr").filter(has_text=HOSTILE)).to_contain_text("disabled")
    confirm(page, "Enable")
    expect(page.locator("tbody tr").filter(has_text=HOSTILE)).to_contain_text("enabled")


def test_a_member_creates_an_own_application_credential(open_window, fleet):
    page = open_window("users", account=fleet.member).page
    expect(page.locator("main > .empty")).to_contain_text("Only administrators")
    page.get_by_role("button", name="New credential").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("backup program")
    dialog.get_by_label("Roles").select_option("member")
    dialog.get_by_role("button", name="Create").click()
    secret = dialog.locator(".secret")
    expect(secret).to_contain_text("OS_APPLICATION_CREDENTIAL_SECRET=")
    lines = secret.inner_text().splitlines()
    id, text = [line.partition("=")[2] for line in lines]
    method = {"id": id, "secret": text}
    identity = {"methods": ["application_credential"], "application_credential": method}
    assert fleet.stoker.request("POST", "/identity/v3/auth/tokens", {"auth": {"identity": identity}}).status == 201
    dialog.get_by_role("button", name="I have copied it").click()
    expect(page.locator("tbody tr")).to_contain_text("backup program")
    confirm(page, "Delete")
    expect(page.get_by_text("You have none")).to_be_visible()


def test_metrics_are_plotted_for_administrators_only(open_window, fleet):
    window = open_window("settings")
    names = "performance.getEntriesByType('resource').map(entry => entry.name).join()"
    assert "metrics-" not in window.page.evaluate(names)
    window.page.get_by_role("button", name="More").click()
    window.page.get_by_role("link", name="Metrics").click()
    expect(window.page.get_by_role("img")).to_have_count(4)
    expect(window.page.get_by_role("img", name="Agents")).to_have_attribute(
        "aria-label", "Agents: online 5 servers, offline 0 servers"
    )
    assert "metrics-" in window.page.evaluate(names)
    page = open_window("metrics", account=fleet.member).page
    expect(page.locator("main .empty")).to_contain_text("Only administrators")
