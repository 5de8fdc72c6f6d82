"""``stoker-agent run``: run the deployments of the server, until stopped."""

from __future__ import annotations

import argparse
import logging
import logging.handlers
import sys
from pathlib import Path
from typing import List

from stoker_agent import __version__, proxy
from stoker_agent.agent import Agent, lock
from stoker_agent.config import Paths, credential
from stoker_agent.enrollment import ensure_enrollment
from stoker_agent.programs import list_builtin
from stoker_agent.runs import Runs
from stoker_agent.self_update import guard_start
from stoker_agent.service_manager import ServiceManager
from stoker_agent.settings import keep, settings
from stoker_agent.status import StatusFile
from stoker_agent.transports import SOURCES, STOKER

_log = logging.getLogger("stoker-agent")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_source_arguments(parser)


def add_source_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where documents come from."""
    parser.add_argument(
        "--sources", type=_words, help=f"sources of documents, in order of preference: {', '.join((STOKER, *SOURCES))}"
    )
    parser.add_argument("--os-collect-config", type=Path, metavar="FILE", help="what to start from: sections by source")
    parser.add_argument(
        "--deployed",
        type=Path,
        metavar="DIR",
        default=Path("/var/lib/heat-config/deployed"),
        help="with --os-collect-config: what heat-agents ran here, and is not to run again (%(default)s)",
    )
    parser.add_argument(
        "--document-key",
        type=Path,
        metavar="FILE",
        help="key that verifies signed documents on a machine that is not enrolled; it is stored",
    )
    parser.add_argument("--polling-interval", type=float, metavar="SECONDS", help="0.2 to 30, between two polls")
    parser.add_argument("--ca-file", help="additional CA certificate")


def main(options: argparse.Namespace, paths: Paths) -> int:
    """Run until stopped. Raises Unusable if the agent cannot start."""
    create_agent(options, paths).run()
    return 0


def create_agent(options: argparse.Namespace, paths: Paths) -> Agent:
    """
    Take the lock of the agent's directory, start the log and return the agent. Raises Unusable.

    ``options`` are those of ``add_source_arguments``.
    """
    list_builtin()  # imports all hooks, before another program can take the place of this one's file
    paths.make()
    lock(paths)  # the lock lasts until this process ends
    log_to(paths)
    config = ensure_enrollment(paths)
    if config is not None:
        proxy.configure(config.proxy, config.no_proxy)
    current = settings(
        paths.sources,
        enrolled=config is not None,
        sources=options.sources,
        os_collect_config=options.os_collect_config,
        polling=options.polling_interval,
        ca_file=options.ca_file,
    )
    if current.sections:
        keep(paths.sources, current)
    names = current.usable(config is not None)
    who = "not enrolled" if config is None else f"of server {config.server_id} at {config.url}"
    _log.info("agent.started: agent %s %s, sources %s", __version__, who, ", ".join(names))
    if options.os_collect_config is not None:
        Runs(paths.state).adopt(options.deployed)
    key = credential(paths, config, options.document_key)
    if key is None:
        _log.warning("key.missing: this agent has no key and cannot verify documents in objects and queues")
    status = StatusFile(paths.state, names)
    manager = ServiceManager()
    guard_start(paths, manager)
    return Agent(config, current, paths, key, status, manager)


def log_to(paths: Paths) -> None:
    """Log to standard error and to a small rotating file. The agent never logs inputs or keys."""
    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handlers: List[logging.Handler] = [logging.StreamHandler()]
    try:
        handlers.append(logging.handlers.RotatingFileHandler(str(paths.log_file), "a", 1024 * 1024, 2))
    except OSError as error:
        print(f"stoker-agent: cannot log to {paths.logs}: {error}", file=sys.stderr)
    logger = logging.getLogger("stoker-agent")
    logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)
    logging.raiseExceptions = False  # when the disk is full, logging errors must not fill standard error


def _words(text: str) -> List[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
