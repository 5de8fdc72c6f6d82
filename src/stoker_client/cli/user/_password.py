"""The options for a new password, and the prompt without them."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from stoker_client.cli._options import together
from stoker_client.cli._values import read_text
from stoker_client.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

password_options = together(
    (
        click.option("--password", metavar="TEXT", help="Other users of the machine can read a command line."),
        click.option("--password-file", metavar="FILE", help="A file with the password; - is standard input."),
    )
)


def read_password(password: str | None, file: str | None) -> str:
    """
    Return the password of ``--password`` or ``--password-file``, else from standard input.

    On a terminal, prompts for the password twice. Raises BadInput if the password is empty.
    """
    if password is not None and file is not None:
        raise click.UsageError("--password and --password-file exclude each other")
    if password is None:
        if file is None and sys.stdin.isatty():
            return str(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
        password = read_text(file or "-", "--password-file").removesuffix("\n").removesuffix("\r")
    if not password:
        raise BadInput("the password is empty: write it to standard input, or use --password-file")
    return password
