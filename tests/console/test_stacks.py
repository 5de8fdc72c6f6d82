"""One stack: its graph with folded and unfolded parts, its template, and its snapshots."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from support.templates import config, define, on, template

from .conftest import confirm, problems_of


@pytest.fixture(scope="module")
def lanes(site) -> str:
    """A stack with a script on each of four servers, one of which fails."""
    script = config('#!/bin/sh\n[ $(hostname) ] && [ "$fail" != yes ]', inputs=("fail",))
    values = [{"fail": "yes" if n == 2 else "no"} for n in range(4)]
    runs = {f"run{n}": on(site.server(f"web{n}"), "script", input_values=values[n]) for n in range(4)}
    inner = template({"one": value(1), "two": {**value(2), "depends_on": ["one"]}})
    last = {**value(3), "depends_on": ["nest"]}
    resources = {"script": script, **runs, "nest": {"type": "inner.yaml"}, "last": last}
    return site.create_stack(
        "lanes",
        template(resources, parameters={"secret": {"type": "string", "hidden": True, "default": "not to be shown"}}),
        "CREATE_FAILED",
        files={"inner.yaml": json.dumps(inner)},
    )


def value(content: Any) -> dict[str, Any]:
    return define("OS::Heat::Value", value=content)


def test_equal_lanes_fold_and_failures_stay_visible(open_window, site, lanes, axe):
    page = open_window(f"{lanes[1:]}?tab=graph").page
    fold = page.locator('[data-name="run0 …"]')
    expect(fold).to_have_attribute("aria-label", re.compile("4 servers with 1 deployment each.*1 failed"))
    expect(page.locator(".graph-bar")).to_contain_text("run2")
    expect(page.locator(".graph-bar").get_by_role("link", name="run2")).to_be_visible()
    assert problems_of(page, axe) == []
    fold.focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-name=run2]")).to_have_attribute("aria-label", re.compile("on web2, create failed"))
    assert "open=" in page.url
    page.reload()
    expect(page.locator("[data-name=run2]")).to_be_visible()
    expect(page.locator('.graph [tabindex="0"]')).to_have_count(1)
    page.get_by_role("button", name="Fold all").click()
    expect(fold).to_be_visible()


def test_a_nested_stack_unfolds_in_the_graph(open_window, site, lanes):
    page = open_window(f"{lanes[1:]}?tab=graph").page
    nest = page.locator("[data-name=nest]")
    expect(nest).to_have_attribute("aria-expanded", "false")
    nest.focus()
    page.keyboard.press(" ")
    expect(nest).to_have_attribute("aria-expanded", "true")
    expect(page.locator('[data-name="nest/two"]')).to_be_visible()
    nest.focus()
    for name in ("nest/one", "nest/two", "last"):
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.dataset.name") == name


def test_the_graph_is_saved_as_a_picture(open_window, site, lanes, tmp_path):
    page = open_window(f"{lanes[1:]}?tab=graph").page
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as SVG").click()
    assert download.value.suggested_filename == "lanes.svg"
    file = Path(tmp_path / "lanes.svg")
    download.value.save_as(file)
    root = ElementTree.fromstring(file.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = [text for text in root.iter("{http://www.w3.org/2000/svg}text") if "nest" in (text.text or "")]
    assert "rgb(" in texts[0].attrib["fill"]


def test_template_and_environment_hide_secrets(open_window, site, lanes, axe):
    page = open_window(f"{lanes[1:]}?tab=template").page
    shown = page.get_by_role("textbox", name="Template")
    expect(page.get_by_role("textbox", name="Environment")).to_contain_text("parameters")
    expect(page.locator(".cm-lineNumbers").first).to_contain_text("1")
    shown.focus()
    page.keyboard.type("x")  # changes nothing
    expect(shown).to_contain_text(re.compile("^heat_template_version"))
    page.keyboard.press("Control+End")
    expect(shown).to_contain_text('default: "******"')
    assert "not to be shown" not in page.content() + shown.inner_text()
    assert problems_of(page, axe) == []
    page.get_by_role("button", name="Parameters").click()
    expect(page.locator(".facts").last).to_contain_text("******")


def test_a_snapshot_is_taken_restored_and_deleted(open_window, site, axe):
    path = site.create_stack("saved", template({"v": value("before")}))
    page = open_window(f"{path[1:]}?tab=snapshots").page
    page.get_by_label("Name of a snapshot").fill("first")
    page.get_by_role("button", name="Take a snapshot").click()
    expect(page.locator("tbody tr")).to_contain_text("first")
    expect(page.locator("tbody .state")).to_contain_text("complete")
    assert problems_of(page, axe) == []
    changed = {"template": template({"v": value("after")})}
    assert site.stoker.heat("PUT", path, changed).status == 202
    site.stoker.until(lambda: site.stoker.stack(path)["stack_status"] == "UPDATE_COMPLETE")
    confirm(page, "Restore")
    expect(page.locator(".facts .state").first).to_contain_text("restore complete")
    shown = site.stoker.heat("GET", f"{path}/template").body
    assert shown["resources"]["v"]["properties"]["value"] == "before"
    page.locator("tbody").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no snapshots.")).to_be_visible()


def test_a_large_stack_is_a_table_first(open_window, site):
    resources = {f"v{n}": {**value(n), **({"depends_on": [f"v{n - 1}"]} if n % 10 else {})} for n in range(400)}
    path = site.create_stack("large", template(resources))
    page = open_window(f"{path[1:]}?tab=graph").page
    expect(page.locator("table").first).to_have_attribute("aria-rowcount", "401")
    page.get_by_role("button", name="Draw all of them").click()
    expect(page.locator(".graph rect")).to_have_count(400)
