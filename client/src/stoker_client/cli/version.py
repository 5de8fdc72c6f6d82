"""Show the version of this program (that of the server: `stoker status`)."""

import sys

import click


@click.command()
def command() -> None:
    click.echo(f"stoker {own_version()} (Python {sys.version.partition(' ')[0]})")


def own_version() -> str:
    """Return the installed version."""
    from importlib.metadata import PackageNotFoundError, version  # imported here because the import is slow

    try:
        return version("stoker-client")
    except PackageNotFoundError:
        return "(not installed)"  # a source tree without an installation
