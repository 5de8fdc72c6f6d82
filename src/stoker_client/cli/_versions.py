"""The argument NAME/VERSION."""

from __future__ import annotations

import click


def versioned_name(text: str) -> tuple[str, int]:
    """Parse ``nginx/1`` or ``catalog://nginx/1`` to a name and a version. Raises BadParameter."""
    name, _, version = text.removeprefix("catalog://").partition("/")
    if not name or not version.isdecimal() or int(version) < 1:
        raise click.BadParameter(f"{text!r} is not a name and a version, such as nginx/1")
    return name, int(version)
