"""Choose servers and act on them: labels, runs, upgrades, enrollment and approval, in a browser with real agents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from support.install_line import Machine

from .conftest import confirm


def rows(page: Page) -> Any:
    return page.get_by_role("group", name="Servers", exact=True).locator("tbody tr")


def complete_trigger(page: Page, name: str, count: int) -> None:
    """Wait until the page of a trigger shows that all its runs have succeeded."""
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    progress = page.get_by_role("progressbar").first
    expect(progress).to_have_attribute("aria-valuetext", f"{count} of {count} have ended, 0 failed")


@pytest.fixture
def denying(site) -> Iterator[None]:
    """The policy of the server web3 admits no scripts."""
    policy = {"allow": "PROJECT", "groups": ["ansible"]}
    assert site.stoker.heat("PATCH", "/servers/web3", {"policy": policy}).status == 200
    yield
    site.stoker.heat("PATCH", "/servers/web3", {"policy": None})


def test_the_selector_is_completed_and_written_by_menus(open_window, site):
    page = open_window("servers").page
    # another test of this site may have enrolled a server
    known = site.stoker.heat("GET", "/server_counts?selector=os.family%20exists").body["server_counts"]["total"]
    selector = page.get_by_role("combobox", name="Selector")
    page.keyboard.press("/")
    selector.focus()
    selector.press_sequentially("os.fam")
    expect(page.get_by_role("option", name="os.family")).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    selector.press_sequentially("=")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"selector=os\.family%3D\w+"))
    expect(rows(page)).to_have_count(known)
    page.get_by_text("Add a condition").click()
    page.get_by_role("button", name=re.compile("^script")).click()
    expect(page).to_have_url(re.compile("and\\+hooks%3Dscript"))
    page.reload()
    expect(rows(page)).to_have_count(known)
    page.get_by_role("button", name="Remove hooks=script").click()
    expect(page).not_to_have_url(re.compile("hooks"))
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("host", exact=True).check()
    expect(page.get_by_role("columnheader", name="Host name")).to_be_visible()
    assert "host" in page.url


def test_labels_of_all_that_match_change_at_once(open_window, site):
    page = open_window("servers?name=web").page
    expect(rows(page)).to_have_count(4)
    page.get_by_role("button", name="Select all 4 that match").click()
    page.get_by_role("button", name="Change labels …").click()
    page.get_by_label("Changes").fill("tier")
    page.get_by_role("dialog").get_by_role("button", name="Change labels").click()
    expect(page.get_by_role("alert")).to_contain_text("neither NAME=VALUE nor NAME-")
    page.get_by_label("Changes").fill("tier=web site=vienna")
    page.get_by_role("dialog").get_by_role("button", name="Change labels").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".label", has_text="tier=web")).to_have_count(4)
    counts = site.stoker.heat("GET", "/server_counts?selector=tier=web%20and%20site=vienna").body["server_counts"]
    assert counts["total"] == 4
    page.get_by_label("Select web1").check()
    page.get_by_label("Select web2").check()
    page.get_by_role("button", name="Export …").click()
    expect(page.get_by_role("dialog")).to_contain_text("web1 web2")


def test_labels_of_one_server_are_edited(open_window, site):
    page = open_window(f"servers/{site.server('web0')}").page
    page.get_by_role("button", name="Edit labels …").click()
    page.get_by_label("Labels, as NAME=VALUE").fill("rack=a7")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".facts .label")).to_have_text(["rack=a7"])
    for title in ("Policy", "Drift", "History", "Facts"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()


def test_a_command_runs_where_the_preview_says(open_window, denying):
    page = open_window("servers?name=web").page
    page.get_by_role("button", name="Select all 4 that match").click()
    page.get_by_role("button", name="Run a command …").click()
    preview = page.get_by_label("Chosen servers")
    expect(preview).to_contain_text("3 begin at once")
    expect(preview).to_contain_text("1 is left out")
    expect(preview).to_contain_text(re.compile("web3.*runs no configs of the group script"))
    page.get_by_label("Command or script").fill('echo "run by $WHO"')
    page.get_by_label("Variables").fill("WHO=console")
    page.get_by_label("Canary").fill("many")
    page.get_by_role("button", name="Run on 3 servers").click()
    expect(page.get_by_role("alert")).to_contain_text("canary is a number")
    page.get_by_label("Canary").fill("1")
    page.get_by_label("At a time").fill("2")
    page.get_by_placeholder("run", exact=True).fill("greeting")
    page.get_by_role("button", name="Run on 3 servers").click()
    complete_trigger(page, "greeting", 3)
    page.get_by_role("link", name=re.compile("web[0-2]")).first.click()
    expect(page.locator(".line-text").first).to_have_text("run by console")


def test_a_name_that_no_server_has_is_named(open_window):
    page = open_window("run?servers=web1 absent1").page
    expect(page.get_by_text("No server is named absent1.")).to_be_visible()
    page.get_by_placeholder("web1 web2 db*").fill("absent*")
    page.get_by_placeholder("web1 web2 db*").blur()
    expect(page.get_by_text("No server matches.")).to_be_visible()
    expect(page.get_by_role("button", name="Run on 0 servers")).to_be_disabled()


def test_a_config_runs_with_its_inputs(open_window, site):
    inputs = [{"name": "target", "default": "s3", "description": "Where it goes"}, {"name": "key", "secret": True}]
    site.stoker.create_config('#!/bin/sh\necho "$target"', name="backup", inputs=inputs)
    page = open_window("run?what=config&servers=web1").page
    page.locator("select").select_option(label="backup (script)")
    expect(page.get_by_label("target")).to_have_attribute("placeholder", "default: s3")
    expect(page.get_by_label(re.compile("^key"))).to_have_attribute("type", "password")
    page.get_by_label("target").fill("tape")
    page.get_by_role("button", name="Run on 1 server").click()
    expect(page.get_by_label(re.compile("^key"))).to_be_focused()  # it has no default
    page.get_by_label(re.compile("^key")).fill("word")
    page.get_by_role("button", name="Run on 1 server").click()
    complete_trigger(page, "backup", 1)
    page.get_by_role("link", name="web1").click()
    expect(page.locator(".line-text").first).to_have_text("tape")


def test_a_config_runs_before_the_list_of_all_configs_has_come(open_window, site):
    id = site.stoker.create_config("#!/bin/sh\necho at once", name="prompt")
    page = open_window().page
    page.route(re.compile("/software_configs\\?.*limit="), lambda _: None)  # never answered
    page.goto(f"{site.home}run?what=config&config={id}&servers=web1")
    expect(page.get_by_text("There are no inputs")).to_be_visible()
    expect(page.locator("select")).to_have_value(id)
    page.get_by_role("button", name="Run on 1 server").press("Enter")
    complete_trigger(page, "prompt", 1)


def test_the_conditions_of_a_selector_start_no_run(open_window):
    page = open_window("run?selector=os.family%20exists%20and%20hostname%20exists").page
    page.get_by_label("Command or script").fill("true")
    page.get_by_label("Canary").fill("none")
    expect(page.get_by_role("button", name=re.compile("Run on [1-9]"))).to_be_enabled()
    page.evaluate("document.querySelector('.run-form').addEventListener('submit', () => document.body.append('sent;'))")
    page.get_by_role("button", name="Remove hostname exists").click()
    page.get_by_text("Add a condition").click()
    page.get_by_role("button", name=re.compile("^script")).click()
    expect(page).to_have_url(re.compile("and\\+hooks%3Dscript"))
    before = page.url
    page.get_by_label("Canary").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("canary is a number")
    assert page.url == before
    assert page.evaluate("document.body.textContent.split('sent;').length") == 2


def test_a_catalog_entry_runs_with_a_form_of_its_inputs(open_window, site):
    text = (
        "stoker_catalog_version: 1\nname: greet\nversion: 1\ndescription: greets\ngroup: script\nactions: [CREATE]\n"
        "inputs:\n- {name: whom, description: w, default: world}\n"
        "- {name: loud, type: Boolean, description: l, default: false}\n"
        'config: "#!/bin/sh\\necho hello $whom $loud"\n'
    )
    assert site.stoker.heat("POST", "/catalog", {"text": text}).status == 201
    page = open_window("run?what=entry&servers=web2").page
    page.get_by_label("Entry of the catalog").select_option("greet/1")
    page.get_by_label("whom").fill("console")
    page.get_by_label(re.compile("^loud")).select_option("true")
    page.get_by_role("button", name="Run on 1 server").click()
    complete_trigger(page, "greet", 1)
    page.get_by_role("link", name="web2").click()
    expect(page.locator(".line-text").first).to_have_text(re.compile("hello console true", re.IGNORECASE))


def test_agents_are_upgraded_by_a_trigger_with_a_canary(open_window):
    page = open_window("servers?name=web1").page
    page.get_by_label("Select web1").check()
    page.get_by_role("button", name="Upgrade agents …").click()
    expect(page.get_by_label("Chosen servers")).to_contain_text("1 begins at once")
    page.get_by_label("Canary").fill("1")
    page.get_by_role("button", name="Run on 1 server").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("agent-upgrade")
    expect(page.get_by_text("Canary")).to_be_visible()


def test_a_machine_is_seen_to_arrive(open_window, tmp_path):
    page = open_window("servers").page
    page.get_by_role("link", name="Enroll servers").click()
    page.get_by_label("Name", exact=True).fill("arriving1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Waiting for the machine")).to_be_visible()
    page.get_by_role("button", name="Copy").press("Enter")
    machine = Machine(tmp_path / "machine")
    try:
        pasted = machine.paste(page.locator(".copied pre").inner_text())
        assert pasted.returncode == 0, pasted.stderr
        expect(page.get_by_role("listitem").filter(has_text="arriving1")).to_contain_text(re.compile("connected, .*s"))
    finally:
        machine.end()


def test_machines_that_wait_are_approved_together(open_window, site):
    page = open_window("enroll").page
    page.get_by_label("several, named by their host names").check()
    page.get_by_label("Maximum number of machines").fill("2")
    page.get_by_label("Each machine waits for approval").check()
    page.get_by_role("button", name="Create the command").click()
    match = re.search(r"echo\s+([0-9a-f]{64})", page.locator(".copied pre").inner_text())
    assert match is not None
    for number in (1, 2):
        agent = {"version": "1", "hooks": ["script"]}
        body = {"token": match[1], "instance": f"i{number}", "hostname": f"waiting{number}", "agent": agent}
        assert site.stoker.request("POST", "/agent/v1/enroll", body).status == 201
    expect(page.get_by_role("listitem").filter(has_text="waiting2")).to_contain_text("pending approval")
    page.goto(page.url.replace("enroll", "servers?status=PENDING_APPROVAL"))
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Select this page").click()
    confirm(page, "Approve")
    expect(page.get_by_text("No server matches these filters.")).to_be_visible()
    counts = site.stoker.heat("GET", "/server_counts?name=waiting*").body["server_counts"]
    assert counts["total"] == 2
    assert "PENDING_APPROVAL" not in counts["by_status"]


def test_a_reader_chooses_and_runs_nothing(open_window, site):
    page = open_window("servers", site.reader).page
    expect(page.get_by_label("Selector")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Select")).to_have_count(0)
    expect(page.get_by_role("link", name="Enroll servers")).to_have_count(0)
    page.goto(page.url.replace("servers", "run"))
    expect(page.get_by_text("Readers cannot start runs.")).to_be_visible()


def test_a_one_time_link_opens_the_console(site, chromium):
    """The code is in the fragment: it leaves the address bar and the history, and works once."""
    link = site.stoker.run("console", "--print").stdout.strip()
    assert "/console/enter#code=" in link
    context = chromium.new_context()
    page = context.new_page()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url + str(request.headers.get("referer"))))
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert page.url == site.home
    code = link.partition("code=")[2]
    assert not any(code in text for text in sent)
    assert page.evaluate("history.length") <= 2
    page.go_back()
    assert code not in page.url
    other = chromium.new_context().new_page()
    other.goto(link)
    expect(other.get_by_role("status")).to_contain_text("has expired or was used")
    assert code not in other.url
    other.get_by_role("link", name="Sign in with a password").click()
    expect(other.get_by_label("User name")).to_be_visible()
    assert code not in site.stoker.output
    context.close()
    other.context.close()


def test_links_of_the_command_line_open_their_pages(open_window, site):
    trigger = site.ended(site.trigger("#!/bin/sh\necho linked\n", "linked"))
    run = site.run_of(trigger)
    page = open_window().page
    for words, heading in (
        (("stack", "show", "shop"), "shop"),
        (("trigger", "show", trigger["id"]), "linked"),
        (("deployment", "show", run), "linked"),
        (("run", "web0", "--keep", "--name", "kept", "--", "true"), "kept"),
    ):
        option = words.index("--") if "--" in words else len(words)
        shown = site.stoker.run(*words[:option], "--link", *words[option:])
        link = re.search(r"http://\S+/console/p/\S+", shown.stderr)
        assert link is not None, shown
        page.goto(link[0])
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile(f"^{heading}"))
