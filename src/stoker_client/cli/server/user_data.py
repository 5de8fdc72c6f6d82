"""Enroll a server and print its cloud-init part: a #cloud-config that installs the agent at the first boot.

\b
  stoker server user-data web1 > user-data
  openstack server create --user-data user-data … web1
"""

import json

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session
from stoker_client.cli._values import given_options


@click.command("user-data")
@click.argument("name")
@click.option("--proxy", metavar="URL", help="The HTTP proxy of the machine, http://HOST:PORT.")
@click.pass_obj
def command(session: Session, name: str, proxy: str | None) -> None:
    enrollment = session.client.servers.enroll(name, **given_options({"proxy": proxy}))["enrollment"]
    # JSON is YAML, so the quoting is always right.
    echo(f"#cloud-config\nruncmd:\n  - {json.dumps(['/bin/sh', '-c', enrollment['command']])}")
    echo(f"The user data holds a token, which is good for one machine until {enrollment['expires_at']}.", err=True)
    if warning := enrollment.get("warning"):
        echo(f"Warning: {warning}.", err=True)
