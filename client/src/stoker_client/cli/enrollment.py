"""Commands that make machines servers: enrollments, and the relays of remote sites."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import click

from stoker_client.cli._groups import Group
from stoker_client.cli._nouns import Noun
from stoker_client.cli._options import duration, given_options, pair, read_text
from stoker_client.cli._output import Output, echo, emit_data, emit_one, join_labels, output_option
from stoker_client.cli._session import Session

_ENROLLMENT = Noun("enrollment", lambda client: client.enrollments)
enrollment = Group(
    commands=[
        _ENROLLMENT.list(
            "List the enrollments of the project, without their tokens.",
            ("id", "status", "uses", "limit", "labels", "expires_at"),
            wide=("server_id", "name_from", "names", "approval", "rerun", "created_by", "created_at"),
            order="created_at",
            cells=lambda enrollment: {"labels": join_labels(enrollment)},
        ),
        _ENROLLMENT.delete("Revoke tokens; servers that were enrolled with them keep their keys."),
    ]
)


#: Options for many machines, and for one.
_MANY: Sequence[str] = ("machines", "name_from", "names", "approve")
_AGAIN: Sequence[str] = ("again", "rerun")
_ONE: Sequence[str] = ("name", *_AGAIN)


@click.command("enroll")
@click.argument("name", required=False)
@click.option("--many", is_flag=True, help="One token for many machines.")
@click.option("--limit", "machines", type=click.IntRange(min=1), metavar="N",
              help="With --many: the number of machines (required).")  # fmt: skip
@click.option(
    "--name-from", type=click.Choice(("hostname", "cloud-id")),
    help="With --many: where names come from (default: hostname).",
)  # fmt: skip
@click.option(
    "--names", metavar="PATTERN",
    help="With --many: stacks may use names that match, such as 'web*'. Others wait for `stoker server approve NAME`.",
)  # fmt: skip
@click.option("--approve", is_flag=True, help="With --many: servers wait for `stoker server approve`.")
@click.option("--again", is_flag=True, help="For another machine in the place of an enrolled server.")
@click.option("--rerun", is_flag=True, help="With --again: the machine runs everything again.")
@click.option(
    "--label", "labels", type=pair, multiple=True, metavar="NAME=VALUE",
    help="A label of the servers; can be repeated.",
)  # fmt: skip
@click.option("--expires", type=duration, metavar="DURATION", help="How long the token is valid (default: 24h).")
@click.option(
    "--with", "download", type=click.Choice(("python3", "curl", "wget")), default="python3", show_default=True,
    help="The program with which the line downloads; the agent needs python3 in any case.",
)  # fmt: skip
@click.option("--proxy", metavar="URL", help="The HTTP proxy of the machine, http://HOST:PORT.")
@click.option("--relay", metavar="RELAY", help="The name or id of the relay through which the agent reaches Stoker.")
@output_option
@click.pass_obj
def enroll(
    session: Session,
    /,
    labels: Sequence[tuple[str, str]],
    expires: timedelta | None,
    download: str,
    proxy: str | None,
    relay: str | None,
    output: Output,
    **choice: Any,
) -> None:
    """Enroll servers: print a command to run on the machine, or on many machines.

    \b
      stoker server enroll web1
      stoker server enroll web1 --again
      stoker server enroll --many --limit 500 --expires 7d --label role=web --approve

    The command works once, for one machine. With --many it works on each machine of an image or a
    scaling group; names come from the machines. With --again another machine takes the place of an
    enrolled server, whose labels, policy, deployments and history stay.
    """
    _check(choice)
    client = session.client
    seconds = None if expires is None else int(expires.total_seconds())
    options = {"download": download, **given_options({"expires_in": seconds, "proxy": proxy, "relay": relay})}
    if choice["many"]:
        body = {"limit": choice["machines"], "labels": dict(labels), "approval": choice["approve"], **options}
        names = given_options({name: choice[name] for name in ("name_from", "names")})
        answer = {"enrollment": client.enrollments.create({**body, **names})}
    else:
        answer = client.servers.enroll(choice["name"], **options, **{key: True for key in _AGAIN if choice[key]})
        if labels:
            answer["server"] = dict(client.servers.change(answer["server"]["id"], {"labels": dict(labels)}))
    enrollment = answer["enrollment"]
    if output.columns:
        emit_one(output, enrollment)
    elif output.is_data:
        emit_data(output.form, answer)
    else:
        echo(enrollment["command"])
        echo(f"{_hint(choice)}, until {enrollment['expires_at']}.", err=True)
    if warning := enrollment.get("warning"):
        echo(f"Warning: {warning}.", err=True)


def _check(choice: Mapping[str, Any]) -> None:
    """Raises UsageError for options that do not go together."""
    if choice["many"]:
        if not choice["machines"]:
            raise click.UsageError("--many needs --limit, the number of machines")
        refuse, rule = _ONE, "excludes"
    elif not choice["name"]:
        raise click.UsageError("give a NAME, or --many --limit N")
    else:
        refuse, rule = _MANY, "needs"
    wrong = [name for name in refuse if choice[name]]
    if wrong:
        word = {"name": "a NAME", "machines": "--limit", "name_from": "--name-from"}.get(wrong[0], f"--{wrong[0]}")
        raise click.UsageError(f"{word} {rule} --many")
    if choice["rerun"] and not choice["again"]:
        raise click.UsageError("--rerun needs --again: a new server has nothing to run again")


def _hint(choice: Mapping[str, Any]) -> str:
    if choice["many"]:
        return f"Run this line on each machine. It is good for {choice['machines']} machines"
    if choice["again"]:
        return f"Paste this line on the machine that becomes {choice['name']}. It is good for one machine"
    return f"Paste this line on {choice['name']}. It is good for one machine"


@click.command("user-data")
@click.argument("name")
@click.option("--proxy", metavar="URL", help="The HTTP proxy of the machine, http://HOST:PORT.")
@click.pass_obj
def user_data(session: Session, name: str, proxy: str | None) -> None:
    """Enroll a server and print its cloud-init part: a #cloud-config that installs the agent at the first boot.

    \b
      stoker server user-data web1 > user-data
      openstack server create --user-data user-data … web1
    """
    enrollment = session.client.servers.enroll(name, **given_options({"proxy": proxy}))["enrollment"]
    # JSON is YAML, so the quoting is always right.
    echo(f"#cloud-config\nruncmd:\n  - {json.dumps(['/bin/sh', '-c', enrollment['command']])}")
    echo(f"The user data holds a token, which is good for one machine until {enrollment['expires_at']}.", err=True)
    if warning := enrollment.get("warning"):
        echo(f"Warning: {warning}.", err=True)


_RELAY = Noun("relay", lambda client: client.relays)
relay = Group(
    commands=[
        _RELAY.list(
            "List the relays of the project.",
            ("name", "url", "online", "agents", "last_seen", "version"),
            wide=("id", "created_by", "created_at"),
            order="name",
        ),
        _RELAY.delete("Delete relays and revoke their keys; their agents then need another URL of Stoker."),
    ],
    entry_group="stoker.commands.relay",
    others={"install": "stoker-relay", "run": "stoker-relay"},
)


@relay.command("create")
@click.argument("name")
@click.option("--url", required=True, metavar="URL", help="The URL at which the site's agents reach the relay.")
@click.option("--ca-file", metavar="FILE", help="The CA of the relay's certificate, if the machines do not trust it.")
@output_option
@click.pass_obj
def create_relay(session: Session, name: str, url: str, ca_file: str | None, output: Output) -> None:
    """Create a relay and print its key, which is not shown again.

    \b
      stoker relay create site1 --url https://relay.site1.example:8005

    The machine of the relay needs the key: `stoker relay install` and `stoker relay run` read it.
    """
    ca = None if ca_file is None else read_text(ca_file, "--ca-file")
    relay = session.client.relays.create({"name": name, "url": url, "ca": ca})
    emit_one(output, relay, ("id", "name", "url", "key"))
