"""Commands of ``stoker server`` for policies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from stoker_client.cli._options import chosen_servers, label_option, one_of, read_text
from stoker_client.cli._output import Output, echo, emit_list, emit_one, output_option
from stoker_client.cli._session import Batch, Session
from stoker_client.errors import BadInput

_WORDS = ("STACK", "PROJECT")
_HOOK_WORDS = ("NONE", "STORED", "ANY")
_FIELDS = ("policy", "policy_source", "window")


def _parse_allowed(text: str) -> str | dict[str, str]:
    kind, equals, which = text.partition("=")
    if text.upper() in _WORDS:
        return text.upper()
    if equals and which and kind in ("stack", "project"):
        return {kind: which}
    raise click.BadParameter(f"{text!r} is not STACK, PROJECT, stack=NAME or project=NAME")


def _window(text: str) -> dict[str, Any]:
    cron, *more = (piece.strip() for piece in text.split(";"))
    if not cron or len(more) not in (1, 2) or not more[0].isdecimal():
        raise click.BadParameter(f"{text!r} is not 'CRON; MINUTES' or 'CRON; MINUTES; TIMEZONE'")
    return {"cron": cron, "minutes": int(more[0]), **({"timezone": more[1]} if more[1:] else {})}


@click.command("policy")
@click.argument("words", nargs=-1, metavar="SERVER [FILE]")
@label_option
@click.option(
    "--allow",
    type=_parse_allowed,
    multiple=True,
    metavar="WHO",
    help="STACK, PROJECT, stack=NAME or project=NAME (or their ids).",
)
@click.option("--group", "groups", multiple=True, metavar="GROUP", help="A group of configs that may run (script …).")
@click.option(
    "--hook", "hooks", multiple=True, metavar="NONE|STORED|ANY|SHA256",
    help="Hooks that the agent may fetch: none, stored ones, any, or those with these digests.",
)  # fmt: skip
@click.option("--max-concurrent", type=click.IntRange(min=1), metavar="N", help="Maximum number of runs at a time.")
@click.option(
    "--window", "windows", type=_window, multiple=True, metavar="'CRON; MINUTES'",
    help="Run only in this window; a time zone may follow after another semicolon.",
)  # fmt: skip
@click.option("--clear", is_flag=True, help="Remove the server's policy.")
@output_option
@click.pass_obj
def policy(
    session: Session,
    /,
    *,
    words: Sequence[str],
    selector: str | None,
    clear: bool,
    output: Output,
    **values: Any,
) -> None:
    """Show or set who may deploy what to a server, and when.

    Without options, show the policy, and whether it is the server's own or the site's. FILE (YAML or JSON; - is
    standard input) or the options replace the whole policy; --clear removes it, so that the site's applies.

    \b
      stoker server policy db1 --allow STACK
      stoker server policy db1 --allow stack=app --allow project=blue --group script --max-concurrent 2
      stoker server policy db1 --window '0 2 * * *; 120; Europe/Vienna'
      stoker server policy --label role=db --max-concurrent 1
    """
    refs, files = (words[:0], words) if selector else (words[:1], words[1:])
    if len(files) > 1:
        raise click.UsageError(f"unexpected argument {files[1]!r} after FILE")
    chosen = chosen_servers(session, refs, selector)
    options = _options(**values)
    changes = bool(files or options or clear)
    if changes and not one_of(bool(files), bool(options), clear):
        raise click.UsageError("give a file, or options, or --clear")
    body = {"policy": None if clear else options or (_read(files[0]) if files else None)}
    servers = session.client.servers
    with Batch() as batch:
        results = batch.each(chosen, lambda ref: servers.change(ref, body) if changes else servers.show(ref))
        if chosen == refs and results:
            emit_one(output, {name: results[0].get(name) for name in _FIELDS})
        elif changes:
            for server in results:
                echo(f"policy of server {server['name']} set")
        else:
            emit_list(output, results, ("name", *_FIELDS), order="name")


def _options(
    allow: Sequence[str | dict[str, str]],
    groups: Sequence[str],
    hooks: Sequence[str],
    max_concurrent: int | None,
    windows: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    words = [entry for entry in allow if isinstance(entry, str)]
    if words and len(allow) > 1:
        raise click.UsageError(f"--allow {words[0]} excludes other --allow options")
    if allow:
        policy["allow"] = words[0] if words else list(allow)
    if groups:
        policy["groups"] = list(groups)
    if hooks:
        policy["hooks"] = hooks[0].upper() if hooks[0].upper() in _HOOK_WORDS else list(hooks)
    if max_concurrent is not None:
        policy["max_concurrent_runs"] = max_concurrent
    if windows:
        policy["maintenance_windows"] = list(windows)
    return policy


def _read(file: str) -> Any:
    from stoker_client.templates.documents import parse  # imported here because only files need PyYAML

    policy = parse(read_text(file, "FILE"), file)
    if not isinstance(policy, dict | str):
        raise BadInput(f"{file} is not a policy: a policy is a mapping, STACK or PROJECT")
    return policy
