"""Run Stoker's agent on this server: enroll it, keep it running, see how it stands."""

from __future__ import annotations

import argparse
import logging
import logging.handlers
import sys
from pathlib import Path
from typing import List, Optional

from stoker_agent import __version__
from stoker_agent.config import Config, Paths, Unusable, credential, read
from stoker_agent.programs import list_builtin

_SOURCES = ("stoker", "cfn", "heat", "request", "zaqar")


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command line ``argv`` (default: ``sys.argv``) and return the exit code. Print each error as one line."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help", "--version"):
        words.insert(0, "run")  # options without a command belong to `run`
    options = _parser().parse_args(words)
    paths = Paths.of(getattr(options, "root", None))
    try:
        return int(options.do(options, paths) or 0)
    except Unusable as error:
        print(f"stoker-agent: {error}", file=sys.stderr)
    except OSError as error:
        print(f"stoker-agent: {error.strerror}: {error.filename}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def exit_with() -> None:
    """Exit with the code of ``main``. The zipapp calls this function, because its entry point cannot return a code."""
    sys.exit(main())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stoker-agent", description=__doc__)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run what the server is told to run, until stopped")
    run.add_argument("--once", action="store_true", help="look once, do what is new, and end")
    run.add_argument("--sources", type=_words, help=f"where to get documents, the first first: {', '.join(_SOURCES)}")
    run.add_argument("--os-collect-config", type=Path, metavar="FILE", help="what to start from: sections by source")
    run.add_argument(
        "--deployed",
        type=Path,
        metavar="DIR",
        default=Path("/var/lib/heat-config/deployed"),
        help="with --os-collect-config: what heat-agents ran here, and is not to run again (%(default)s)",
    )
    run.add_argument(
        "--document-key",
        type=Path,
        metavar="FILE",
        help="key that documents in objects and queues are signed with, where this machine is not enrolled; kept",
    )
    run.add_argument("--polling-interval", type=float, metavar="SECONDS", help="0.2 to 30, between looks at a source")
    run.add_argument("--ca-file", help="certificate to trust, when neither the system nor a section has it")
    run.set_defaults(do=_run)
    enroll = commands.add_parser("enroll", help="trade an enrollment token for this server's own key")
    enroll.add_argument("--url", required=True, help="where Stoker is reached")
    enroll.add_argument(
        "--token-file",
        metavar="FILE",
        help="the single-use token, - for standard input (default: STOKER_TOKEN, else standard input)",
    )
    enroll.add_argument("--token", help=argparse.SUPPRESS)
    enroll.add_argument("--ca-file", help="certificate to trust, when it is not the system's")
    enroll.set_defaults(do=_enroll)
    status = commands.add_parser("status", help="what this agent knows")
    status.set_defaults(do=_status)
    for command in (run, enroll, status):
        command.add_argument("--root", help="a directory for all of the agent's files, instead of the system's places")
    build = commands.add_parser("build", help="write the agent as one executable file")
    build.add_argument("target", type=Path)
    build.set_defaults(do=_build)
    hook = commands.add_parser("hook", help="write one built-in hook as an executable file for another agent")
    hook.add_argument("group", choices=list_builtin(), metavar="GROUP", help=", ".join(list_builtin()))
    hook.add_argument("target", type=Path)
    hook.set_defaults(do=_build_hook)
    return parser


def _words(text: str) -> List[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _run(options: argparse.Namespace, paths: Paths) -> None:
    from stoker_agent.agent import Agent, lock
    from stoker_agent.runs import Runs
    from stoker_agent.settings import CliOptions, keep, settings

    paths.make()
    config = _read_enrollment(paths)
    lock(paths)  # the lock lasts until this process ends
    _log_to(paths)
    wanted = CliOptions(options.sources, options.os_collect_config, options.polling_interval, options.ca_file)
    current = settings(paths.sources, wanted, enrolled=config is not None)
    if current.sections:
        keep(paths.sources, current)
    names = current.usable(config is not None)
    who = "not enrolled" if config is None else f"of server {config.server_id} at {config.url}"
    logging.getLogger("stoker-agent").info("agent.started: agent %s %s, sources %s", __version__, who, ", ".join(names))
    if options.os_collect_config is not None:
        Runs(paths.state).adopt(options.deployed)
    key = credential(paths, config, options.document_key)
    if key is None:
        logging.getLogger("stoker-agent").warning(
            "key.missing: this agent has no key and cannot verify documents in objects and queues"
        )
    agent = Agent(config, current, paths, key)
    if options.once:
        agent.once()
    else:
        agent.run()


def _read_enrollment(paths: Paths) -> Optional[Config]:
    """Return the enrollment, or None if this server is not enrolled. Raise Unusable if the file cannot be read."""
    return read(paths.config) if paths.config.exists() else None


def _enroll(options: argparse.Namespace, paths: Paths) -> None:
    from stoker_agent.enroll import enroll, read_token

    if options.token is not None:
        raise Unusable(
            "every user of this machine can read a token on a command line:"
            " give it on standard input, in --token-file FILE or in STOKER_TOKEN"
        )
    token = read_token(options.token_file)
    config = enroll(paths, options.url.rstrip("/"), token, options.ca_file)
    print(f"enrolled as server {config.server_id}")


def _status(_: argparse.Namespace, paths: Paths) -> None:
    from stoker_agent.runs import Runs
    from stoker_agent.settings import CliOptions, settings

    config = _read_enrollment(paths)
    current = settings(paths.sources, CliOptions(), enrolled=config is not None)
    runs = Runs(paths.state)
    print(f"server      {config.server_id if config else 'not enrolled'}")
    print(f"url         {config.url if config else '-'}")
    print(f"sources     {', '.join(current.usable(config is not None))}")
    print(f"unreported  {len(runs.list_unreported())}")
    print(f"running     {len(runs.list_interrupted())}")


def _build(options: argparse.Namespace, _: Paths) -> None:
    from stoker_agent.archive import build

    build(options.target)


def _build_hook(options: argparse.Namespace, _: Paths) -> None:
    from stoker_agent.archive import build_hook

    build_hook(options.group, options.target)


def _log_to(paths: Paths) -> None:
    """Log to standard error and to a small rotating file. The agent never logs inputs or keys."""
    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    handlers: List[logging.Handler] = [logging.StreamHandler()]
    try:
        file = logging.handlers.RotatingFileHandler(str(paths.logs / "agent.log"), maxBytes=1024 * 1024, backupCount=2)
        handlers.append(file)
    except OSError as error:
        print(f"stoker-agent: cannot log to {paths.logs}: {error}", file=sys.stderr)
    logger = logging.getLogger("stoker-agent")
    logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.setFormatter(form)
        logger.addHandler(handler)
    logging.raiseExceptions = False  # when the disk is full, logging errors must not fill standard error


if __name__ == "__main__":
    exit_with()
