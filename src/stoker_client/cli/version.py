"""Show the version of this program (that of the server: `stoker status`)."""

import sys

import click

from stoker_client.cli._version import own_version


@click.command()
def command() -> None:
    click.echo(f"stoker {own_version()} (Python {sys.version.partition(' ')[0]})")
