"""The option ``--status`` for stacks and resources."""

import click

status_option = click.option(
    "--status", metavar="STATUS", help="Only those in this state: CREATE_FAILED, or FAILED after any action."
)


def is_status(status: str, selected: str | None) -> bool:
    """
    Whether ``status`` (``CREATE_FAILED``) matches ``wanted`` (in any case, with or without the action); None matches
    all.
    """
    return selected is None or status == selected.upper() or status.endswith(f"_{selected.upper()}")
