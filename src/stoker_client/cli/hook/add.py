"""Store a hook: the executable FILE, for configs with the option `hook: NAME`.

The same name again stores the next version. Configs use the version that is the newest when they are created.
"""

from pathlib import Path

import click

from stoker_client.cli._output import Output, emit_one, output_option
from stoker_client.cli._session import Session

FIELDS = ("name", "version", "sha256", "size", "public")


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--description", default="", metavar="TEXT", help="What the hook is for.")
@click.option("--public", is_flag=True, help="Every project may use the hook; only for administrators of the site.")
@output_option
@click.pass_obj
def command(session: Session, name: str, file: Path, description: str, public: bool, output: Output) -> None:
    hook = session.client.hooks.add(name, file.read_bytes(), description=description, public=public)
    emit_one(output, hook, FIELDS)
