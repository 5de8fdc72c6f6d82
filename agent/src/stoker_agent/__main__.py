"""Run Stoker's agent on this server: enroll it, keep it running, show its status."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import List, Optional

from stoker_agent import __version__
from stoker_agent.config import Paths, Unusable
from stoker_agent.terminal import protect

_DESCRIPTION = "Run Stoker's agent on this server: enroll it, keep it running, show its status."
#: Commands with a module of their own in ``stoker_agent.commands``.
_COMMANDS = {
    "enroll": "exchange an enrollment token for this server's own key",
    "run": "run the deployments of the server, until stopped",
    "run-once": "run pending deployments once, report the results, and exit",
    "status": "what this agent knows, and whether it is well",
    "config": "show or change the URL, the CA file and the proxy",
    "install": "install the agent as a service, of its own user, or in an image",
    "doctor": "check everything that the agent needs, with remedies",
    "self-test": "check that this program can be the agent of this machine",
    "logs": "the agent's log, or the output of a run",
    "stop": "end the agent of this machine",
    "leave": "remove the agent from this machine, and this machine from Stoker",
    "build": "write the agent as one executable file",
}


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command line ``argv`` (default: ``sys.argv``) and return the exit code. Print each error as one line."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0].startswith("-") and words[0] not in ("-h", "--help", "--version"):
        words.insert(0, "run")  # options without a command belong to `run`
    protect()
    options = _parser(words[0] if words else "").parse_args(words)
    try:
        return int(options.do(options, Paths.of(options.root)) or 0)
    except Unusable as error:
        print(f"stoker-agent: {error}", file=sys.stderr)
    except OSError as error:
        reason = f"{error.strerror}: {error.filename}" if error.filename else error
        print(f"stoker-agent: {reason}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def exit_with() -> None:
    """Exit with the code of ``main``. The zipapp calls this function, because its entry point cannot return a code."""
    sys.exit(main())


def _parser(chosen: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stoker-agent", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    if chosen == "update-guard":  # internal
        _add_command(commands.add_parser(chosen), chosen, is_chosen=True)
    for name, text in _COMMANDS.items():
        _add_command(commands.add_parser(name, help=text), name, is_chosen=name == chosen)
    return parser


def _add_command(parser: argparse.ArgumentParser, name: str, *, is_chosen: bool) -> None:
    """Define a command of ``_COMMANDS``. Its module is imported only if the command is to run."""
    parser.add_argument("--root", help="a directory for all of the agent's files, instead of the system's places")
    if is_chosen:
        module = importlib.import_module(f"stoker_agent.commands.{name.replace('-', '_')}")
        module.add_arguments(parser)
        parser.set_defaults(do=module.main)


if __name__ == "__main__":
    exit_with()
