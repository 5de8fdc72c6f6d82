"""The command ``stoker console``: a browser that is signed in."""

from __future__ import annotations

import webbrowser

import click

from stoker_client.cli._output import echo
from stoker_client.cli._session import Session


@click.command("console")
@click.option("--print", "prints", is_flag=True, help="Print the link instead of opening a browser.")
@click.pass_obj
def console(session: Session, prints: bool) -> None:
    """Open the console in the browser, signed in as this user.

    The link contains a code, which signs in once and within a minute. The session ends with the token of this login.

    \b
      stoker console
      stoker console --print
    """
    client = session.client
    link = f"{client.root_url}/console/enter#code={client.console_code()}"
    if prints or not webbrowser.open(link):
        echo(link)
    else:
        echo("The console opens in the browser; `stoker console --print` prints a link.", err=True)
