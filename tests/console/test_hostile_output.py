"""Output and names that try to be more than text, and the largest ones that are stored, in a real browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .conftest import HOSTILE, Site

#: A name that is read from right to left from its middle on, closes an attribute, and opens an element.
NAME = f'a "quoted" \u202egpj.exe\u202c {HOSTILE}'
#: Markup, a title, a link, a cleared screen, hidden text, colors, a progress line, and bytes that are no text.
ODD = r"""#!/bin/sh
echo '<script>alert(1)</script><img src=x onerror=alert(1)>'
printf '\033]0;owned\007\033]8;;javascript:alert(1)\033\\a link\033]8;;\033\\ \033[2J\033[?25l\n'
printf '\033[31mred\nstill red\033[0m\n'
for share in 10 50 100; do printf '%s %%\r' $share; done; printf '\n'
printf 'bytes \377\376 \001\n'
printf '\342\200\256backwards\n' >&2
"""
#: A megabyte in one line, and then more than is stored.
LARGE = """#!/bin/sh
head -c 1048576 /dev/zero | tr '\\0' x
echo
seq -f 'line %.0f of many, long enough for a stored output of some size' 1 160000
echo the end
while [ ! -e {folder}/go ]; do sleep 0.05; done
"""


@pytest.fixture(scope="module")
def odd(site: Site) -> str:
    trigger = site.trigger(ODD, NAME)
    run = site.run_of(trigger)
    site.ended(trigger)
    return f"runs/{run}"


@pytest.fixture(scope="module")
def large(site: Site, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("large")
    trigger = site.trigger(LARGE.format(folder=folder), "large", most=1)
    run = site.run_of(trigger)

    def has_all() -> bool:  # a short run would report less than is stored of a long one
        chunks = site.stoker.heat("GET", f"/software_deployments/{run}/logs?before=2147483647").body["logs"]
        return bool(chunks and chunks[-1]["data"].endswith("the end\n"))

    site.stoker.until(has_all)
    (folder / "go").touch()
    assert site.ended(trigger)["complete"] == 1
    return f"runs/{run}"


def test_odd_output_is_shown_as_text(open_window, odd):
    page = open_window(odd).page
    lines = page.locator(".line-text")
    expect(lines).to_have_count(7)
    texts = lines.all_inner_texts()
    assert {
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "a link ",
        "red",
        "still red",
        "100 %",
        "bytes \ufffd\ufffd ␁",
        "\u202ebackwards",
    } == set(texts)
    expect(page.locator(".line .fg-red")).to_have_count(2)
    expect(page.get_by_role("link", name="a link")).to_have_count(0)
    assert page.title().endswith("Stoker")
    expect(page.locator("main h1")).to_contain_text(NAME)


def test_names_stay_in_their_places(open_window, odd, site):
    page = open_window("triggers").page
    page.get_by_role("link", name=NAME).click()
    expect(page.locator("main h1")).to_contain_text(NAME)
    expect(page.locator(".group")).to_have_count(1)
    assert page.locator("main img").count() == page.locator("main script").count() == 0


def test_streams_stand_apart_or_alone(open_window, odd):
    page = open_window(odd).page
    streams = page.get_by_role("group", name="Streams")
    streams.get_by_role("button", name="side by side").click()
    expect(page.get_by_role("group", name="Lines of stderr").locator(".line")).to_have_count(1)
    expect(page.get_by_role("group", name="Lines of stdout").locator(".line")).to_have_count(6)
    streams.get_by_role("button", name="stderr").click()
    expect(page.locator(".line")).to_have_count(1)


def test_the_stored_bytes_are_downloaded(open_window, odd):
    page = open_window(odd).page
    page.get_by_text("Copy, download").click()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download standard output").click()
    content = started.value.path().read_bytes()
    assert b"\x1b]0;owned\x07" in content
    assert b"10 %\r50 %\r100 %\r\n" in content


def test_the_largest_output_begins_at_its_end_and_is_read_on_request(open_window, large):
    page = open_window(large).page
    expect(page.locator(".line-text").last).to_have_text("the end")
    expect(page.get_by_role("status").filter(has_text="the last")).to_be_visible()
    assert page.locator(".line").count() < 200
    # A search needs all of it.
    page.get_by_label("Search").fill("line 159990 ")
    expect(page.get_by_role("status").filter(has_text="1 of 1 lines")).to_be_visible()
    expect(page.locator(".line.current .line-text")).to_have_text(
        "line 159990 of many, long enough for a stored output of some size"
    )
    page.get_by_label("Search").fill("^line .*(1|2)59990 ")
    page.get_by_label("regular expression").check()
    expect(page.get_by_role("status").filter(has_text="1 of 1 lines")).to_be_visible()
    page.get_by_label("Search").fill("bytes are not stored")
    expect(page.locator(".line.current .gap")).to_have_text(
        re.compile(r"… [34]\.\d MB of standard output are not stored …")
    )
    page.get_by_label("Search").fill("(")
    expect(page.get_by_role("status").filter(has_text="invalid regular expression")).to_be_visible()


def test_a_link_to_lines_of_the_largest_output_leads_to_them(open_window, large):
    page = open_window(large).page
    page.get_by_label("Search").fill("line 159000 ")
    page.locator(".line.current .line-number").click()
    expect(page.locator(".line.chosen")).to_have_count(1)
    page.get_by_label("Search").fill("")
    page.reload()
    expect(page.locator(".line.chosen .line-text")).to_contain_text("line 159000 ")
    expect(page.locator(".line.chosen")).to_be_in_viewport()


def test_a_line_of_a_megabyte_is_shown_in_parts(open_window, large):
    page = open_window(f"{large}?lines=stdout%400&wrap=1").page
    line = page.locator(".line.chosen")
    expect(line.get_by_role("button", name="more characters")).to_be_visible()
    assert len(line.locator(".line-text").inner_text()) == 4096
    line.get_by_role("button", name="more characters").click()
    expect(line.get_by_role("button", name="more characters")).to_be_visible()
    assert len(line.locator(".line-text").inner_text()) == 65_536


def test_the_view_lets_go_when_the_reader_scrolls_up(open_window, site, tmp_path):
    script = f"#!/bin/sh\nseq 1 200\nwhile [ ! -e {tmp_path}/go ]; do sleep 0.05; done\nseq 201 250\n"
    trigger = site.trigger(script, "follow")
    page = open_window(f"runs/{site.run_of(trigger)}").page
    expect(page.locator(".line-text").last).to_have_text("200")
    page.locator(".log-box").hover()
    page.mouse.wheel(0, -1000)
    button = page.get_by_role("button", name="To the end")
    expect(button).to_be_visible()
    position = page.locator(".log-box").evaluate("box => box.scrollTop")
    (tmp_path / "go").touch()
    expect(page.get_by_text("250 lines")).to_be_visible()
    assert page.locator(".log-box").evaluate("box => box.scrollTop") == position
    page.locator(".follow").click()
    expect(page.locator(".line-text").last).to_have_text("250")
    site.ended(trigger)
