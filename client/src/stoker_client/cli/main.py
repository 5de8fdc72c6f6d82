"""The program ``stoker``: its commands, global options, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import io
import sys
import time
import traceback
import webbrowser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import get_completion_class

from stoker_client.cli._groups import Group
from stoker_client.cli._output import (
    Output,
    echo,
    emit_list,
    emit_one,
    explaining_write_errors,
    list_options,
    output_option,
    wants_color,
)
from stoker_client.cli._session import FAILED, INTERRUPTED, MEANINGS, Session, exit_code
from stoker_client.errors import BadInput, ClientError, Refused

if TYPE_CHECKING:
    from stoker_client.client import Client

_EXAMPLES = Path(__file__).parents[1] / "examples"
#: The commands of other modules: the module of this package, and the line in ``stoker --help``.
COMMANDS = {
    "audit": ("identity", "List who requested what, and what was decided"),
    "catalog": ("catalog", "Manage the catalog: typed, versioned configs, such as nginx/1"),
    "check": ("drift", "Check whether servers still are as deployments left them, and show the differences"),
    "config": ("config", "Manage software configs: immutable scripts with their inputs and outputs"),
    "credential": ("identity", "Manage application credentials: logins for programs, limited to chosen roles"),
    "deployment": ("deployment", "Manage software deployments: a config joined with a server"),
    "drift": ("drift", "Show and repair differences between servers and what deployments left there"),
    "enrollment": ("enrollment", "List and revoke enrollments: tokens with which machines become servers"),
    "hook": ("catalog", "Manage stored hooks, which agents fetch for the configs that name them"),
    "project": ("identity", "Manage projects: each has its own stacks, configs and servers"),
    "relay": ("enrollment", "Manage relays: programs that serve the agents of a remote site over a few connections"),
    "resource-type": ("template", "List resource types and show their properties"),
    "run": ("run", "Run a command or a script on one server or on several, now"),
    "schedule": ("schedule", "Run triggers once or repeatedly at set times"),
    "server": ("server", "Manage servers: machines with an agent"),
    "snapshot": ("stack", "Take, list, restore and delete snapshots of stacks"),
    "stack": ("stack", "Create, change, show and delete stacks"),
    "template": ("template", "Validate templates, and list the functions that they may call"),
    "trigger": ("trigger", "Run an action of a component, or any config, now, on one server or on many"),
    "user": ("identity", "Manage users and their roles in projects"),
}


_CLOUD = "--os-cloud"
_PACKAGE = "stoker-client"
_SERVER = "stoker-server"


@click.group(
    cls=Group,
    modules={name: (f"{__package__}.{module}", line) for name, (module, line) in COMMANDS.items()},
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
@click.version_option(
    package_name=_PACKAGE, prog_name="stoker", message="%(prog)s %(version)s", help="Show the version."
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


@stoker.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes commands and options in your shell.

    \b
      bash:  eval "$(stoker completion bash)"                     in ~/.bashrc
      zsh:   eval "$(stoker completion zsh)"                      in ~/.zshrc
      fish:  stoker completion fish > ~/.config/fish/completions/stoker.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(stoker, {}, "stoker", "_STOKER_COMPLETE").source())


@stoker.command
@click.option("--print", "prints", is_flag=True, help="Print the link instead of opening a browser.")
@click.pass_obj
def console(session: Session, prints: bool) -> None:
    """Open the console in the browser, signed in as this user.

    The link contains a code, which signs in once and within a minute. The session ends with the token of this login.

    \b
      stoker console
      stoker console --print
    """
    link = f"{session.client.wire.root_url}/console/enter#code={session.client.console_code()}"
    if prints or not webbrowser.open(link):
        echo(link)
    else:
        echo("The console opens in the browser; `stoker console --print` prints a link.", err=True)


@stoker.command
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path("examples"))
def examples(directory: Path) -> None:
    """Write the example templates to DIRECTORY (default: examples).

    An existing file with other content is not overwritten.
    """
    for source in sorted(path for path in _EXAMPLES.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        _write(directory / source.relative_to(_EXAMPLES), source.read_bytes())
    templates = ", ".join(sorted(path.name for path in _EXAMPLES.glob("*.yaml")))
    click.echo(f"{directory} has {templates}")


def _write(target: Path, content: bytes) -> None:
    """Raises BadInput if the file exists with other content, or cannot be written."""
    with explaining_write_errors(target, "DIRECTORY"):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.write_bytes(content)
        elif target.read_bytes() != content:
            raise BadInput(f"{target} exists with other content: remove it, or name another directory")


@stoker.command
@output_option
@click.pass_obj
def status(session: Session, output: Output) -> int:
    """Show whether the service works, and its servers and stacks by state.

    Exits with 6 if the service cannot be reached, and with 1 if it is unhealthy or degraded.
    """
    client = session.client
    start = time.monotonic()
    health = _read_health(client)
    seconds = time.monotonic() - start
    emit_one(output, {
        "url": client.wire.root_url,
        **health,
        "response_ms": round(seconds * 1000),
        "servers": client.servers.counts()["by_status"],
        "stacks": dict(sorted(Counter(stack["stack_status"] for stack in client.stacks.all()).items())),
        "triggers_in_progress": len(client.triggers.all(status="IN_PROGRESS")),
    })  # fmt: skip
    return 0 if health["health"] == "ok" else FAILED


def _read_health(client: Client) -> dict[str, Any]:
    """Return the version, and the health: ``ok``, ``degraded`` with ``warnings``, or the problem."""
    try:
        answer = client.health()
    except Refused as problem:
        return {"version": None, "health": str(problem)}
    warnings = {"warnings": answer["warnings"]} if answer.get("warnings") else {}
    return {"version": answer.get("version"), "health": answer.get("status"), **warnings}


@stoker.command
@list_options()
@click.pass_obj
def overview(session: Session, output: Output) -> None:
    """Show in numbers what runs, what has failed or drifted, and which servers need attention."""
    rows = [{"name": name, **tally} for name, tally in session.client.overview().items()]
    emit_list(output, rows, ("name", "count", "path"))


@stoker.command
@list_options()
@click.pass_obj
def settings(session: Session, output: Output) -> None:
    """List the settings of the service, with their values and sources (administrators of the site)."""
    emit_list(output, session.client.settings(), ("name", "value", "source"), wide=("default", "group", "help"))


@stoker.command
def version() -> None:
    """Show the version of this program (that of the server: `stoker status`)."""
    from importlib.metadata import version as read_version  # imported here because the import is slow

    click.echo(f"stoker {read_version(_PACKAGE)} (Python {sys.version.partition(' ')[0]})")


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
    if isinstance(problem, UnicodeEncodeError):  # bytes of the command line
        return f"{problem.object!r:.100} is not UTF-8 text"
    text = " ".join(str(problem).split())
    return f"unexpected {type(problem).__name__}: {text} (`stoker --debug …` shows where)"


def _make_streams_lenient() -> None:
    """Escape characters that the terminal's encoding lacks, because scripts may print any character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    sys.exit(main())
