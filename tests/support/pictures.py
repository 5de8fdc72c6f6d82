"""
Pictures of each page of the console, of a served Stoker with real agents, in ``build/pictures``.

    python -m support.pictures [PAGE …] [--widths 390,1280] [--schemes light] [--serve]

``--serve`` makes no pictures and serves the site until it is interrupted.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from support.busy_site import BusySite, busy_site
from support.source_code import ROOT
from support.tools import find_tool

FOLDER = ROOT / "build/pictures"
WIDTHS, SCHEMES = ("390", "1280", "2560"), ("light", "dark")
HEIGHTS = {390: 844, 1280: 800, 2560: 1440}


def pages_of(site: BusySite) -> dict[str, str]:
    """Return the path of each picture."""
    server = site.servers["web3"]
    return {
        "overview": "",
        "stacks": "stacks",
        "stack": f"stacks/shop/{site.stack}",
        "stack-graph": f"stacks/shop/{site.stack}?tab=graph",
        "servers": "servers",
        "server": f"servers/{server}",
        "triggers": "triggers",
        "trigger": f"triggers/{site.ended['id']}",
        "trigger-running": f"triggers/{site.running['id']}",
        "run": f"runs/{site.failed}",
        "run-compared": f"runs/{site.failed}?with=1",
    }


def main() -> None:
    arguments = argparse.ArgumentParser(prog="pictures", description=__doc__)
    arguments.add_argument("page", nargs="*", help="only these pages")
    arguments.add_argument("--widths", default=",".join(WIDTHS))
    arguments.add_argument("--schemes", default=",".join(SCHEMES))
    arguments.add_argument("--serve", action="store_true")
    wanted = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="stoker-pictures-") as folder, busy_site(Path(folder)) as site:
        if wanted.serve:
            print(site.home, site.stoker.environment["OS_PASSWORD"], pages_of(site), flush=True)
            signal.sigwait([signal.SIGINT, signal.SIGTERM])
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_tool("chromium"), args=["--no-sandbox"])
            for width in wanted.widths.split(","):
                for scheme in wanted.schemes.split(","):
                    take(browser, site, int(width), scheme, wanted.page)
            browser.close()
        Path(folder, "go").touch()


def take(browser: Browser, site: BusySite, width: int, scheme: str, only: list[str]) -> None:
    """Make the pictures of one width and color scheme."""
    context = browser.new_context(
        color_scheme=scheme,  # type: ignore[arg-type]
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
    for name, path in pages_of(site).items():
        if only and name not in only:
            continue
        page.goto(site.home + path)
        page.locator("main h1").wait_for()
        page.wait_for_function("!document.querySelector('.loading')")
        page.wait_for_timeout(500)  # for streams, which show no end
        page.screenshot(path=FOLDER / f"{name}-{width}-{scheme}.png", full_page=width != 2560)
    context.close()


if __name__ == "__main__":
    main()
