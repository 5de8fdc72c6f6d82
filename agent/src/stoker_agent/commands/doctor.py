"""``stoker-agent doctor``: checks everything that the agent needs, with a remedy for what is missing."""

from __future__ import annotations

import argparse
import json
from typing import Iterator

from stoker_agent import doctor, proxy
from stoker_agent.config import Config, Paths, Unusable, read
from stoker_agent.doctor import FAILURE, OK, SKIPPED, Check
from stoker_agent.doctor_network import check_network
from stoker_agent.first_start import read_invitation
from stoker_agent.machine import is_copy
from stoker_agent.service import find_process


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--url", help="Stoker's URL, on a machine that is not enrolled")
    parser.add_argument("--ca-file", help="certificates to trust, on a machine that is not enrolled")
    parser.add_argument("--json", action="store_true", help="print JSON")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Print one line for each check, and return 1 if a check fails."""
    has_failed = False
    results = []
    for check in _check_all(options, paths):
        has_failed = has_failed or check.outcome == FAILURE
        if options.json:
            results.append(check._asdict())
        else:
            remedy = f" -> {check.remedy}" if check.remedy else ""
            print(f"{check.outcome:<5}{check.name:<10}{check.text}{remedy}", flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return int(has_failed)


def _check_all(options: argparse.Namespace, paths: Paths) -> Iterator[Check]:
    yield doctor.check_python()
    config, running = None, find_process(paths) is not None
    try:
        if paths.config.exists():
            config = read(paths.config)
            proxy.configure(config.proxy, config.no_proxy)
            yield Check("enrolled", OK, f"server {config.server_id} at {config.url}")
            if is_copy(paths.state):
                remedy = "enroll this machine, or, if it is the same machine: stoker-agent enroll --same-machine"
                yield Check("enrolled", FAILURE, "the enrollment was copied from another machine", remedy)
        elif (invitation := read_invitation(paths)) is not None:
            config = Config(invitation.url, "", "", invitation.ca_file, proxy=invitation.proxy)
            proxy.configure(config.proxy, config.no_proxy)
            text = f"not yet: this machine, or each machine of this image, enrolls at {invitation.url}"
            remedy = "it enrolls when its agent starts first: systemctl start stoker-agent, or: stoker-agent run"
            yield Check("enrolled", SKIPPED, text, remedy)
        else:
            remedy = (
                "run `stoker server enroll NAME` at Stoker, and its line here; for an image,"
                " `stoker server enroll --many`, and `stoker-agent enroll --at-boot` here"
            )
            yield Check("enrolled", SKIPPED, "this machine is not enrolled", remedy)
    except (Unusable, OSError) as error:
        yield Check("enrolled", FAILURE, str(error), "enroll this machine again")
    yield from doctor.check_files(paths, config)
    if options.url:
        config = (config or Config("", "", ""))._replace(url=options.url.rstrip("/"))
    if options.ca_file and config is not None:
        config = config._replace(ca_file=options.ca_file)
    if config is None:
        yield Check("network", SKIPPED, "there is no URL to check", "add --url URL")
    else:
        yield from check_network(config, is_running=running)
    yield from doctor.check_hooks(paths)
    yield from doctor.check_disk(paths)
    yield from doctor.check_service(options.root, is_running=running)
