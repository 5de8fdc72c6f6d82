"""New stacks and updates: the template, the form of its parameters, and the plan that one button applies."""

from __future__ import annotations

import json
import re
from typing import Any

from playwright.sync_api import Page, expect

from support.templates import config, define, on, template

from .conftest import Site, problems_of, sign_in_again

PARAMETERS = """\
heat_template_version: 2018-08-31
parameters:
  size: {type: number, default: 8, constraints: [{range: {min: 1, max: 64}}], description: Characters of the key}
  color: {type: string, constraints: [{allowed_values: [red, green]}]}
  flags: {type: json, default: {a: 1}}
  names: {type: comma_delimited_list, default: 'x,y'}
  password: {type: string, hidden: true}
resources:
  key: {type: OS::Heat::RandomString, properties: {length: {get_param: size}}}
  all:
    type: OS::Heat::Value
    properties: {value: [{get_param: color}, {get_param: flags}, {get_param: names}, {get_param: password}]}
"""


def editor(page: Page, name: str = "Template"):
    return page.get_by_role("textbox", name=name)


def write(page: Page, text: str) -> None:
    """Replace the template, as people do."""
    editor(page).focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def next_step(page: Page, name: str) -> None:
    page.get_by_role("button", name=f"Next: {name}").click()


def wait_complete(page: Page, state: str = "create complete") -> None:
    expect(page.locator(".facts .state").first).to_contain_text(state)


def on_web(site: Site, text: str, **more: Any) -> dict[str, Any]:
    """A template with a deployment on two servers of the site."""
    runs = {f"run{n}": on(site.server(f"web{n}"), "script") for n in (0, 1)}
    return template({"script": config(text), **runs, **more})


def test_a_stack_is_created_from_a_pasted_template(open_window, site, axe):
    page = open_window("stacks").page
    page.get_by_role("link", name="New stack").click()
    write(page, PARAMETERS)
    expect(page.get_by_role("status")).to_have_text("The template is valid, with 5 parameters.")
    assert problems_of(page, axe) == []
    next_step(page, "parameters")
    page.get_by_label("Name of the stack").fill("pasted")
    expect(page.locator("#parameter-size-notes")).to_have_text("Characters of the key · 1 to 64")
    page.get_by_label("size").fill("12")
    page.get_by_label("color").select_option("green")
    page.get_by_label("flags").fill("{no json")
    page.get_by_label("password").fill("very secret")
    next_step(page, "review")
    expect(page.locator("#parameter-flags-notes")).to_contain_text("JSON is needed")
    assert problems_of(page, axe) == []
    page.get_by_label("flags").fill('{"b": [true]}')
    next_step(page, "review")
    expect(page.locator(".plan-counts")).to_have_text(re.compile("2.*added"))
    assert problems_of(page, axe) == []
    page.get_by_role("button", name="Create pasted").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("pasted")
    wait_complete(page)
    shown = site.stoker.stack(page.url.partition(site.stoker.project)[2])
    assert shown["parameters"]["size"] == "12"
    assert json.loads(shown["parameters"]["flags"]) == {"b": [True]}
    assert shown["parameters"]["names"] == "x,y"
    # Hidden values are never shown again, and stay through an update that does not touch them.
    page.get_by_role("link", name="Update").click()
    expect(page.get_by_role("status")).to_contain_text("5 parameters")
    next_step(page, "parameters")
    password = page.get_by_label("password")
    expect(password).to_have_value("")
    expect(password).to_have_attribute("placeholder", "unchanged")
    page.get_by_label("size").fill("")
    next_step(page, "review")
    expect(page.locator(".plan-counts li.bad").first).to_have_text(re.compile("±1replaced"))
    assert "very secret" not in page.content()
    page.get_by_role("button", name="Apply plan").click()
    wait_complete(page, "update complete")
    resources = site.stoker.heat("GET", f"/stacks/pasted/{shown['id']}/resources/all").body["resource"]
    assert "very secret" not in json.dumps(resources)
    assert site.stoker.stack(f"/stacks/pasted/{shown['id']}")["parameters"]["size"] == "8"


def test_errors_of_a_template_stand_at_their_lines(open_window):
    page = open_window("new-stack").page
    write(page, "heat_template_version: 2018-08-31\nresources:\n  a:\n    type: OS::Heat::Absent\n")
    button = page.get_by_role("button", name="Line 4")
    expect(button).to_be_visible()
    expect(page.locator(".problems")).to_contain_text("OS::Heat::Absent")
    expect(page.locator(".cm-lint-marker-error")).to_have_count(1)
    expect(page.get_by_role("button", name="Next: parameters")).to_be_disabled()
    button.click()
    page.keyboard.press("End")
    page.keyboard.type("?")  # the page's keys do not count in the editor
    expect(editor(page)).to_contain_text("OS::Heat::Absent?")
    write(page, "a: [\n")
    expect(page.locator(".problems")).to_contain_text("Line 2")


def test_a_template_comes_from_files(open_window, site):
    page, server = open_window("new-stack").page, site.server("web0")
    text = f"""\
heat_template_version: 2018-08-31
resources:
  inner: {{type: inner.yaml}}
  script: {{type: OS::Heat::SoftwareConfig, properties: {{group: script, config: {{get_file: scripts/run.sh}}}}}}
  run: {{type: OS::Heat::SoftwareDeployment, properties: {{config: {{get_resource: script}}, server: {server}}}}}
"""
    inner = "heat_template_version: 2018-08-31\nresources:\n  v: {type: OS::Heat::Value, properties: {value: 1}}\n"

    def file(name: str, content: str) -> Any:
        return {"name": name, "mimeType": "text/plain", "buffer": content.encode()}

    page.get_by_label("Template from a file").set_input_files(file("app.yaml", text))
    expect(page.locator(".banner")).to_contain_text("inner.yaml, scripts/run.sh")
    files = [file("run.sh", "#!/bin/sh\necho from a file\n"), file("inner.yaml", inner)]
    page.get_by_label("Files that the template names").set_input_files(files)
    expect(page.locator(".banner")).to_have_count(0)
    next_step(page, "parameters")
    page.get_by_label("Name of the stack").fill("files")
    next_step(page, "review")
    expect(page.locator(".plan-runs")).to_contain_text("CREATE of run")
    page.get_by_role("button", name="Create files").click()
    wait_complete(page)
    page.get_by_role("link", name="run", exact=True).click()
    expect(page.locator(".line-text")).to_have_text(["from a file"])


def test_a_template_is_an_entry_of_the_catalog(open_window, site):
    page = open_window("new-stack?from=catalog:motd/1").page
    expect(page.get_by_role("status")).to_contain_text("The template is valid")
    next_step(page, "parameters")
    page.get_by_label("server").fill(site.server("web0"))
    page.get_by_label("text").fill("Welcome")
    next_step(page, "review")
    expect(page.locator(".plan-runs")).to_contain_text("web0")


def test_a_plan_shows_replacements_first_and_is_stale_after_another_update(open_window, site, axe):
    key = define("OS::Heat::RandomString", length=8)
    path = site.create_stack("planned", on_web(site, "#!/bin/sh\necho one\necho same\n", key=key))
    page = open_window(f"update-stack{path.removeprefix('/stacks')}").page
    expect(editor(page)).to_contain_text("echo one")
    text = editor(page).inner_text().replace("\n\n", "\n")
    assert "length: 8" in text
    write(page, text.replace("echo one", "echo two").replace("length: 8", "length: 9"))
    next_step(page, "parameters")
    next_step(page, "review")
    expect(page.locator(".plan-counts li").first).to_have_text("±2replaced")
    expect(page.locator(".plan-counts li").first).to_have_class(re.compile("bad"))
    script = page.locator(".plan-list li").filter(has_text="script").first
    expect(script.locator(".removed")).to_have_text("- echo one\n")
    expect(script.locator(".added")).to_have_text("+ echo two\n")
    expect(page.locator(".plan-runs")).to_contain_text("web0")
    assert problems_of(page, axe) == []
    page.get_by_role("button", name="Ask the servers").click()
    # The hook for scripts cannot preview, on both servers alike.
    expect(page.locator(".plan-list details").filter(has_text="unknown")).to_have_count(2)
    assert site.stoker.heat("POST", f"{path}/actions", {"check": None}).status in (200, 201, 202)
    site.stoker.until(lambda: site.stoker.stack(path)["stack_status"] == "CHECK_COMPLETE")
    page.get_by_role("button", name="Apply plan").click()
    expect(page.get_by_role("alert")).to_contain_text("is out of date")
    expect(page.get_by_role("button", name="Apply plan")).to_have_count(0)
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="Apply plan").click()
    wait_complete(page, "update complete")
    page.get_by_role("link", name="run0").click()
    expect(page.locator(".line-text")).to_have_text(["two", "same"])


def test_an_unchanged_template_changes_nothing(open_window, site):
    path = site.create_stack("same", on_web(site, "#!/bin/sh\necho 'a: b' # {c}\n\n  exit 0"))
    page = open_window(f"update-stack{path.removeprefix('/stacks')}").page
    editor(page).focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type("# a comment\n")
    next_step(page, "parameters")
    next_step(page, "review")
    expect(page.locator("main")).to_contain_text("Nothing would change.")


def test_a_draft_survives_the_end_of_the_session(open_window, site):
    page = open_window("new-stack", account=site.member).page
    write(page, PARAMETERS)
    next_step(page, "parameters")
    page.get_by_label("Name of the stack").fill("draft")
    page.get_by_label("color").select_option("red")
    page.get_by_label("password").fill("kept")
    site.end_session(site.member)
    next_step(page, "review")
    sign_in_again(page)
    expect(page.get_by_role("button", name="Create draft")).to_be_visible()
    page.get_by_role("button", name="Back to the parameters").click()
    expect(page.get_by_label("password")).to_have_value("kept")
