"""Show or set who may deploy what to a server, and when.

Without more than the server, its policy is shown, and whether it is its own or the site's. FILE (YAML or JSON; - is
standard input) or the options replace all of it; --clear leaves it to the site.

\b
  stoker server policy db1 --allow STACK
  stoker server policy db1 --allow stack=app --allow project=7f3e… --group script --max-concurrent 2
  stoker server policy db1 --window '0 2 * * *; 120; Europe/Vienna'
"""

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._output import emit_one, output_option
from stoker_client.cli._session import Session
from stoker_client.cli._values import one_of, read_text
from stoker_client.errors import BadInput

WORDS = ("STACK", "PROJECT")
FIELDS = ("policy", "policy_source", "window")


def _allowed(text: str) -> str | dict[str, str]:
    kind, equals, which = text.partition("=")
    if text.upper() in WORDS:
        return text.upper()
    if equals and which and kind in ("stack", "project"):
        return {kind: which}
    raise click.BadParameter(f"{text!r} is none of STACK, PROJECT, stack=NAME and project=ID")


def _window(text: str) -> dict[str, Any]:
    cron, *more = (piece.strip() for piece in text.split(";"))
    if not cron or len(more) not in (1, 2) or not more[0].isdecimal():
        raise click.BadParameter(f"{text!r} is not 'CRON; MINUTES' or 'CRON; MINUTES; TIMEZONE'")
    return {"cron": cron, "minutes": int(more[0]), **({"timezone": more[1]} if more[1:] else {})}


@click.command()
@click.argument("server")
@click.argument("file", required=False)
@click.option("--allow", type=_allowed, multiple=True, metavar="WHO", help="STACK, PROJECT, stack=NAME or project=ID.")
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of configs that may run (script …).")
@click.option("--max-concurrent", type=click.IntRange(min=1), metavar="N", help="So many runs at a time.")
@click.option(
    "--window", "windows", type=_window, multiple=True, metavar="'CRON; MINUTES'",
    help="Run only then; a time zone may follow after another semicolon.",
)  # fmt: skip
@click.option("--clear", is_flag=True, help="No policy of its own.")
@output_option
@click.pass_obj
def command(session: Session, /, *, server: str, file: str | None, clear: bool, form: str, **given: Any) -> None:
    said = _said(**given)
    if file is None and not said and not clear:
        shown = session.client.servers.show(server)
    elif not one_of(file is not None, bool(said), clear):
        raise click.UsageError("give a file, or options, or --clear")
    else:
        policy = None if clear else said if file is None else _read(file)
        shown = session.client.servers.set_policy(server, policy)
    emit_one(form, {name: shown.get(name) for name in FIELDS})


def _said(
    allow: Sequence[str | dict[str, str]],
    groups: Sequence[str],
    max_concurrent: int | None,
    windows: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    words = [each for each in allow if isinstance(each, str)]
    if words and len(allow) > 1:
        raise click.UsageError(f"--allow {words[0]} says all there is: give it alone")
    if allow:
        policy["allow"] = words[0] if words else list(allow)
    if groups:
        policy["groups"] = list(groups)
    if max_concurrent is not None:
        policy["max_concurrent_runs"] = max_concurrent
    if windows:
        policy["maintenance_windows"] = list(windows)
    return policy


def _read(file: str) -> Any:
    import yaml  # only for those who have a file

    try:
        policy = yaml.safe_load(read_text(file, "FILE"))
    except yaml.YAMLError as problem:
        raise BadInput(f"{file} is not YAML: {' '.join(str(problem).split())}") from problem
    if not isinstance(policy, dict | str):
        raise BadInput(f"{file} holds no policy: a mapping, or STACK or PROJECT, is wanted")
    return policy
