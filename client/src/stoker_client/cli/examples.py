"""Write the example templates to a directory."""

from pathlib import Path

import click

from stoker_client.errors import BadInput

_EXAMPLES = Path(__file__).parents[1] / "examples"


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path("examples"))
def command(directory: Path) -> None:
    """Write the example templates to DIRECTORY (default: examples).

    An existing file with other content is not overwritten.
    """
    for source in sorted(path for path in _EXAMPLES.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        _write(directory / source.relative_to(_EXAMPLES), source.read_bytes())
    templates = ", ".join(sorted(path.name for path in _EXAMPLES.glob("*.yaml")))
    click.echo(f"{directory} has {templates}")


def _write(target: Path, content: bytes) -> None:
    """Raises BadInput if the file exists with other content, or cannot be written."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.write_bytes(content)
        elif target.read_bytes() != content:
            raise BadInput(f"{target} exists with other content: remove it, or name another directory")
    except OSError as problem:
        raise BadInput(f"cannot write {target}: {problem.strerror}") from problem
