"""The program ``stoker``: global options, and the conversion of errors to messages and exit codes."""

import io
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click

from stoker_client.cli._exit_codes import INTERRUPTED, MEANINGS, exit_code
from stoker_client.cli._lazy import RootGroup
from stoker_client.cli._output import echo, wants_color
from stoker_client.cli._session import Session
from stoker_client.cli.version import own_version
from stoker_client.errors import ClientError


def _show_version(ctx: click.Context, _param: click.Parameter, is_set: bool) -> None:
    if is_set:
        click.echo(f"stoker {own_version()}")
        ctx.exit()


_CLOUD = "--os-cloud"
_SERVER = "stoker-server"


@click.group(
    cls=RootGroup,
    package=__package__,
    folder=Path(__file__).parent,
    entry_group="stoker.commands",
    others={
        "agent": "stoker-agent",
        "db": _SERVER,
        "demo": _SERVER,
        "env": _SERVER,
        "import": "stoker-migrate",
        "serve": _SERVER,
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExit codes:\n"
    + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in MEANINGS.items())
    + "\n`run` and `trigger --follow` end with the highest exit code of their scripts instead.",
)
@click.option(_CLOUD, metavar="NAME", help="The cloud of clouds.yaml (default: OS_CLOUD, OS_*, then stoker).")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show the version."
)
@click.pass_obj
def stoker(session: Session, os_cloud: str | None, debug: bool) -> None:
    """Software configuration for fleets of servers.

    Templates go in, agents run their scripts in dependency order, outputs come back.
    """
    if not wants_color():
        click.get_current_context().color = False
    session.cloud = os_cloud
    session.debug = debug


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``stoker`` with ``argv`` and return its exit code. Raises no exception but ``SystemExit``."""
    _make_streams_lenient()
    session = Session()
    try:
        result = stoker.main(
            args=_with_cloud_first(sys.argv[1:] if argv is None else argv),
            prog_name="stoker",
            standalone_mode=False,
            obj=session,
        )
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except Exception as problem:  # the user gets a sentence for every error
        return _report_failure(problem, debug=session.debug)
    return result if isinstance(result, int) else 0


def _with_cloud_first(words: Sequence[str]) -> list[str]:
    """Return the words with ``--os-cloud NAME`` before the command: as with `openstack`, it may stand anywhere."""
    own = list(words[: words.index("--")] if "--" in words else words)
    for place, word in enumerate(own):
        if word.startswith(f"{_CLOUD}=") or (word == _CLOUD and place + 1 < len(own)):
            count = 1 if "=" in word else 2
            return [*words[place : place + count], *words[:place], *words[place + count :]]
    return list(words)


def _report_failure(problem: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(problem)
    echo(f"stoker: {_sentence(problem)}", err=True)
    return exit_code(problem)


def _sentence(problem: Exception) -> str:
    if isinstance(problem, ClientError):
        return str(problem)
    text = " ".join(str(problem).split())
    return f"unexpected {type(problem).__name__}: {text} (`stoker --debug …` shows where)"


def _make_streams_lenient() -> None:
    """Escape characters that the terminal's encoding lacks, because scripts may print any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
