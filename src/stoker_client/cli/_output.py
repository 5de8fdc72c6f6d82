"""How results are printed: as a table for people, as the API's own object in JSON or YAML for programs."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click

FORMATS = ("table", "json", "yaml")

output_option = click.option(
    "-o", "--output", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print."
)

#: What Unicode calls the end of a line besides the usual.
_LINE_ENDS = ("\x85", "\u2028", "\u2029")
PIPE_WIDTH = 1_000_000  # a pipe has no width to fit into: nothing is folded there

GOOD, BAD, BUSY = "green", "red", "yellow"
_COLOURS = {"COMPLETE": GOOD, "ONLINE": GOOD, "FAILED": BAD, "OFFLINE": BAD, "PROGRESS": BUSY, "ENROLLING": BUSY}


def emit_list(form: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print ``rows``; a table has only ``columns``."""
    if form != "table":
        emit_data(form, list(rows))
        return
    _table([_title(column) for column in columns], [[inline(row.get(c)) for c in columns] for row in rows])


def emit_one(form: str, thing: Mapping[str, Any], fields: Sequence[str] | None = None) -> None:
    """Print one object; a table has only ``fields``, one a line, those that are absent left out."""
    if form != "table":
        emit_data(form, thing)
        return
    shown = [(name, thing[name]) for name in fields or list(thing) if name in thing]
    _table(["Field", "Value"], [[name, block(value)] for name, value in shown])


def emit_value(form: str, value: Any) -> None:
    """Print one value: text as it is, unless a form is asked for."""
    if form != "table":
        emit_data(form, value)
    else:
        click.echo(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def emit_data(form: str, data: Any, *, stream: bool = False) -> None:
    """Print JSON or YAML. In a ``stream``, each object is a JSON line or a YAML document."""
    if form == "json":
        click.echo(json.dumps(data, ensure_ascii=False, indent=None if stream else 2))
    else:
        click.echo(to_yaml(data, explicit_start=stream), nl=False)


def to_yaml(data: Any, **how: Any) -> str:
    """``data`` as YAML, keys in their own order."""
    import yaml  # most commands print tables

    style: dict[str, Any] = {"sort_keys": False, "default_flow_style": False, "width": 120, **how}
    text: str = yaml.safe_dump(data, allow_unicode=True, **style)
    if any(odd in text for odd in _LINE_ENDS):
        text = yaml.safe_dump(data, **style)  # PyYAML writes these as they are, and reads them as something else
    return text.removesuffix("...\n")  # PyYAML's end mark after a bare value


def inline(value: Any) -> str:
    """A value in a cell of a list."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def block(value: Any) -> str:
    """A value that has the width of the table: structures as YAML."""
    return to_yaml(value).rstrip("\n") if isinstance(value, dict | list) and value else inline(value)


def printable(text: str) -> str:
    """``text`` without the power to move the cursor or change colours: control characters are shown escaped."""
    return "".join(char if char.isprintable() or char == "\n" else _escape(char) for char in text.expandtabs())


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def colour(text: str) -> str:
    """The colour of a status word, or nothing for other text."""
    last = text.rpartition("_")[2]
    return _COLOURS.get(last, "") if text.isupper() and not text.startswith("INIT_") else ""


def _title(column: str) -> str:
    return " ".join(word.upper() if word == "id" else word.capitalize() for word in column.split("_"))


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PIPE_WIDTH)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell), style=colour(cell)) for cell in row))
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as capture:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
