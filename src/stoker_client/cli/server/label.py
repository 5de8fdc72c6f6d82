"""Label servers: NAME=VALUE sets a label, NAME- removes it; without either, show a server's labels.

\b
  stoker server label web1 role=web site-
  stoker server label web1 web2 role=web
  stoker server label --label role=web site=vienna
"""

from collections.abc import Sequence

import click

from stoker_client.cli._batch import Batch
from stoker_client.cli._chosen_servers import chosen_servers, label_option
from stoker_client.cli._output import Output, echo, emit_data, emit_list, list_options
from stoker_client.cli._session import Session

Change = tuple[str, str | None]


@click.command()
@click.argument("words", nargs=-1, metavar="[SERVER]... [NAME=VALUE | NAME-]...")
@label_option
@list_options()
@click.pass_obj
def command(session: Session, words: Sequence[str], selectors: Sequence[str], output: Output) -> None:
    refs, changes = _split(words, named=not selectors)
    servers = session.client.servers
    chosen = chosen_servers(session, refs, selectors)
    if chosen != refs or len(chosen) > 1:
        if not changes:
            raise click.UsageError("say what to change: NAME=VALUE or NAME-")
        batch = Batch()
        for name in batch.each(chosen, lambda ref: servers.label(ref, changes)["name"]):
            echo(f"server {name} labeled")
        batch.exit()
        return
    [ref] = chosen
    has = (servers.label(ref, changes) if changes else servers.show(ref)).get("labels") or {}
    if output.is_data:
        emit_data(output.form, has)
    else:
        emit_list(output, [{"label": name, "value": value} for name, value in sorted(has.items())], ("label", "value"))


def _split(words: Sequence[str], *, named: bool) -> tuple[Sequence[str], dict[str, str | None]]:
    """Split the words into servers (at least one if ``named``) and changes."""
    count = 1 if named else 0
    while named and count < len(words) and not _is_change(words[count]):
        count += 1
    return words[:count], dict(_change(word) for word in words[count:])


def _is_change(word: str) -> bool:
    return "=" in word or word.endswith("-")


def _change(text: str) -> Change:
    name, equals, value = text.partition("=")
    if equals and name:
        return name, value
    if not equals and text.endswith("-") and text != "-":
        return text.removesuffix("-"), None
    raise click.UsageError(f"{text!r} is neither NAME=VALUE nor NAME-")
