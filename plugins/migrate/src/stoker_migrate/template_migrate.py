"""Rewrite a template of Heat for enrolled servers.

Servers of a cloud become enrolled servers, networks and volumes disappear, and references to them are mapped. Prints
what changes; --output-file writes the template, and its nested templates and environments to the same directory.
"""

from collections.abc import Mapping
from pathlib import Path

import click

from stoker_client.cli._output import Output, echo, emit_list, explaining_write_errors, list_options
from stoker_client.errors import BadInput
from stoker_migrate.template.files import migrate_files
from stoker_migrate.template.parts import Change


@click.command("migrate", help=__doc__)
@click.argument("template")
@click.option("-e", "--environment", "environments", multiple=True, metavar="FILE", help="An environment.")
@click.option(
    "--output-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="The new template."
)
@click.option("--force", is_flag=True, help="Replace existing files, but never the originals.")
@list_options()
def command(
    template: str, environments: tuple[str, ...], output_file: Path | None, force: bool, output: Output
) -> None:
    migration = migrate_files(template, environments)
    if output_file is not None:
        _write(migration.place(output_file), force=force)
    rows = migration.report.rows
    emit_list(output, rows, ("file", "part", "change", "text"))
    if warnings := sum(row["change"] == Change.WARNING for row in rows):
        echo(f"{warnings} parts need your attention: see the warnings.", err=True)


def _write(files: Mapping[Path, str], *, force: bool) -> None:
    for path in files:
        if path.exists() and not force:
            raise BadInput(f"{path} exists: use --force to replace it")
    for path, text in files.items():
        with explaining_write_errors(path, "--output-file"):
            path.write_text(text)
