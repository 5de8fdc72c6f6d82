"""Options of stack create and update, and the request that they describe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from stoker_client.cli._options import together
from stoker_client.cli._values import merge, pair

stack_options = together([
    click.option("-t", "--template", metavar="FILE", help="The template: a path or a URL."),
    click.option(
        "-e", "--environment", "environments", multiple=True, metavar="FILE",
        help="An environment; later ones take precedence.",
    ),
    click.option(
        "-P", "--parameter", "parameters", type=pair, multiple=True, metavar="NAME=VALUE", help="One parameter."
    ),
    click.option(
        "--parameter-file", "parameter_files", type=pair, multiple=True, metavar="NAME=FILE",
        help="One parameter, with the content of a file as its value.",
    ),
    click.option("--timeout", type=click.IntRange(min=1), metavar="MINUTES", help="The time limit of the operation."),
    click.option("--tags", metavar="A,B", help="Tags, separated by commas."),
])  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StackInput:
    """The user's description of a stack."""

    template: str | None
    environments: Sequence[str]
    parameters: Sequence[tuple[str, str]]
    parameter_files: Sequence[tuple[str, str]]
    timeout: int | None
    tags: str | None

    def body(self, *, required: str) -> dict[str, Any]:
        """Return the request, with all files read. Raises UsageError with ``required`` if the template is missing."""
        if required and self.template is None:
            raise click.UsageError(required)
        from stoker_client.templates.bundle import collect  # imported here because help texts do not need PyYAML

        body = collect(self.template, self.environments).body()
        body["parameters"] = merge(self.parameters, self.parameter_files, "--parameter-file")
        if self.timeout:
            body["timeout_mins"] = self.timeout
        if self.tags is not None:
            body["tags"] = self.tags
        return body
