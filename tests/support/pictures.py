"""
Pictures of each page of the console, of a served Stoker with real agents, in ``build/pictures``.

    python -m support.pictures [PAGE …] [--widths 390,1280] [--schemes light] [--docs] [--serve]

``--docs`` makes the pictures of the documentation instead, compressed. ``--serve`` makes none and serves the site.
"""

from __future__ import annotations

import argparse
import base64
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.busy_site import WEB, BusySite, busy_site
from support.source_code import ROOT
from support.tools import find_tool

FOLDER, DOCS_FOLDER = ROOT / "build/pictures", ROOT / "docs/images"
WIDTHS, SCHEMES = ("390", "1280", "2560"), ("light", "dark")
HEIGHTS = {390: 844, 1280: 800, 2560: 1440}
#: The pictures of the documentation, with their color schemes.
DOCS = {"trigger": "light", "run-compared": "dark"}
#: Draws a picture and returns it compressed. The page must have no content policy.
_COMPRESS = """async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.8).split(",")[1];
}"""


def pages_of(site: BusySite) -> dict[str, str]:
    """Return the path of each picture."""
    stack = f"stacks/shop/{site.stack}"
    web = "+".join(f"web{number}" for number in range(WEB))
    return {
        "overview": "",
        "stacks": "stacks",
        "stack": stack,
        "stack-graph": f"{stack}?tab=graph",
        "stack-nested": f"stacks/platform/{site.platform}?tab=graph",
        "stack-source": f"{stack}?tab=template",
        "new-stack": "new-stack?from=example:three-tier",
        "update-stack": f"update-stack/shop/{site.stack}",
        "servers": "servers",
        "server": f"servers/{site.servers['web3']}",
        "enroll": "enroll",
        "run-command": f"run?servers={web}+absent1",
        "run-entry": f"run?what=entry&entry=nginx/1&servers={web}",
        "triggers": "triggers",
        "trigger": f"triggers/{site.ended['id']}",
        "trigger-running": f"triggers/{site.running['id']}",
        "run": f"runs/{site.failed}",
        "run-compared": f"runs/{site.failed}?with=1",
        "runs": "runs",
        "schedules": "schedules",
        "drift": "drift",
        "configs": "configs",
        "config": f"configs/{site.upgrade}",
        "catalog": "catalog",
        "catalog-entry": "catalog/nginx/1",
        "audit": "audit",
        "users": "users",
        "relays": "relays",
        "settings": "settings",
        "metrics": "metrics",
        "no-page": "nowhere",
        "palette": "servers",
        "keys": "servers",
        "new-schedule": "schedules",
    }


def open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("dialog").get_by_role("combobox").fill("web")
    page.get_by_role("option", name="web3").first.wait_for()


def review(page: Page) -> None:
    """Change the version, and go to the plan."""
    page.get_by_role("button", name="Next: parameters").click()
    page.get_by_role("button", name="Next: review").click()
    page.locator(".plan-counts").wait_for()


def press(label: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=label).first.click()


def unfold(page: Page) -> None:
    """Unfold what the page folds."""
    page.locator("main .folds > details > summary").first.click()


def enroll(page: Page) -> None:
    page.get_by_label("Name", exact=True).fill("web-lisbon-42")
    page.get_by_role("button", name="Create the command").click()
    page.locator(".copied").first.wait_for()


#: What is done on a page before its picture is made.
STEPS: Mapping[str, Callable[[Page], None]] = {
    "palette": open_palette,
    "keys": lambda page: page.keyboard.press("?"),
    "new-schedule": press("New schedule"),
    "update-stack": review,
    "drift": unfold,
    "enroll": enroll,
    "metrics": lambda page: page.locator(".plots canvas").first.wait_for(),
    "run-command": lambda page: page.get_by_label("Command or script").fill("systemctl is-active nginx"),
}


def main() -> None:
    arguments = argparse.ArgumentParser(prog="pictures", description=__doc__)
    arguments.add_argument("page", nargs="*", help="only these pages")
    arguments.add_argument("--widths", default=",".join(WIDTHS))
    arguments.add_argument("--schemes", default=",".join(SCHEMES))
    arguments.add_argument("--docs", action="store_true")
    arguments.add_argument("--serve", action="store_true")
    wanted = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-pictures-") as folder, busy_site(Path(folder)) as site:
        if wanted.serve:
            print(site.home, site.stoker.environment["OS_PASSWORD"], pages_of(site), flush=True)
            signal.sigwait([signal.SIGINT, signal.SIGTERM])
            return
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_tool("chromium"), args=["--no-sandbox"])
            if wanted.docs:
                take_for_docs(browser, site)
            else:
                FOLDER.mkdir(parents=True, exist_ok=True)
                for width in map(int, wanted.widths.split(",")):
                    for scheme in wanted.schemes.split(","):
                        take(browser, site, width, scheme, wanted.page or list(pages_of(site)))
            browser.close()


def take(browser: Browser, site: BusySite, width: int, scheme: str, names: Sequence[str]) -> None:
    """Make the pictures of one width and color scheme."""
    page = sign_in(browser, site, width, scheme)
    for name in names:
        show(page, site.home + pages_of(site)[name])
        if name in STEPS:
            STEPS[name](page)
            page.wait_for_timeout(500)
        is_long = width != 2560 and page.locator("dialog[open]").count() == 0
        page.screenshot(path=FOLDER / f"{name}-{width}-{scheme}.png", full_page=is_long)
    page.context.close()


def take_for_docs(browser: Browser, site: BusySite) -> None:
    """Make the pictures of the documentation."""
    DOCS_FOLDER.mkdir(exist_ok=True)
    compressor = browser.new_page()
    for name, scheme in DOCS.items():
        page = sign_in(browser, site, 1280, scheme)
        show(page, site.home + pages_of(site)[name])
        picture = base64.b64encode(page.screenshot()).decode()
        DOCS_FOLDER.joinpath(f"{name}.webp").write_bytes(base64.b64decode(compressor.evaluate(_COMPRESS, picture)))
        page.context.close()


def sign_in(browser: Browser, site: BusySite, width: int, scheme: str) -> Page:
    """Open a window as the administrator."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": HEIGHTS.get(width, 900)},
        reduced_motion="reduce",
    )
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(site.home)
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(site.stoker.environment["OS_PASSWORD"])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("navigation", name="Pages").wait_for()
    return page


def show(page: Page, url: str) -> None:
    """Open a page and wait for its content."""
    page.goto(url)
    page.locator("main h1").wait_for()
    expect(page.locator(".loading")).to_have_count(0)
    page.wait_for_timeout(500)  # for streams, which do not say that all has come


if __name__ == "__main__":
    main()
