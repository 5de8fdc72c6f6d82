"""The program ``stoker``: global options, and the one place where failures become a line and an exit code."""

import io
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from stoker_client.cli._lazy import LazyGroup
from stoker_client.cli._session import Session
from stoker_client.errors import ClientError

INTERRUPTED = 130


def _version() -> str:
    try:
        return version("stoker")
    except PackageNotFoundError:
        return "(not installed)"  # run from a source tree


def _show_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"stoker {_version()}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    package=__package__,
    folder=Path(__file__).parent,
    entry_group="stoker.commands",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.option("--os-cloud", metavar="NAME", help="The cloud of clouds.yaml (default: OS_CLOUD, OS_*, then stoker).")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show it.")
@click.pass_obj
def stoker(session: Session, os_cloud: str | None, debug: bool) -> None:
    """Software configuration for fleets of servers.

    Templates go in, agents run their scripts in dependency order, outputs come back.
    """
    session.cloud = os_cloud
    session.debug = debug


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``stoker`` with ``argv`` and answer its exit code. No exception but ``SystemExit`` leaves here."""
    _make_streams_lenient()
    session = Session()
    try:
        result = stoker.main(
            args=None if argv is None else list(argv), prog_name="stoker", standalone_mode=False, obj=session
        )
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except Exception as problem:  # the last stop: whatever it is, the user gets a sentence
        return _failed(problem, debug=session.debug)
    return result if isinstance(result, int) else 0


def _failed(problem: Exception, *, debug: bool) -> int:
    if debug:
        traceback.print_exception(problem)
    click.echo(f"stoker: {_sentence(problem)}", err=True)
    return 1


def _sentence(problem: Exception) -> str:
    if isinstance(problem, ClientError):
        return str(problem)
    text = " ".join(str(problem).split())
    return f"unexpected {type(problem).__name__}: {text} (`stoker --debug …` shows where)"


def _make_streams_lenient() -> None:
    """What a script wrote need not fit the terminal's encoding: such characters are shown escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
