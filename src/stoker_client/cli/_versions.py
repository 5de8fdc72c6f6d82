"""The argument NAME/VERSION, and deletions of versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from stoker_client.cli._batch import delete_each


def versioned_name(text: str) -> tuple[str, int]:
    """Parse ``nginx/1`` or ``catalog://nginx/1`` to a name and a version. Raises BadParameter."""
    name, _, version = text.removeprefix("catalog://").partition("/")
    if not name or not version.isdecimal() or int(version) < 1:
        raise click.BadParameter(f"{text!r} is not a name and a version, such as nginx/1")
    return name, int(version)


def delete_versions(
    versions: Sequence[tuple[str, int]], noun: str, delete: Callable[[str, int], object], *, yes: bool
) -> None:
    """Ask for confirmation, unless ``yes``; delete the versions and print the deleted ones."""
    by_text = {f"{name}/{version}": (name, version) for name, version in versions}
    delete_each(list(by_text), noun, lambda text: delete(*by_text[text]), yes=yes)
