"""Output formats: tables for people, names for shells, and the API's objects as JSON or YAML for programs."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from stoker_client.cli import _table
from stoker_client.errors import BadInput
from stoker_client.terminal import clean_for, escape_controls, has_controls, show_line

if TYPE_CHECKING:
    from rich.console import Console

FORMATS = ("table", "wide", "json", "yaml", "csv", "name", "value")
DATA = ("json", "yaml")
#: Keys that ``-o name`` prints; the first one that an object has.
_NAMES = ("name", "stack_name", "resource_name", "resource_type", "output_key", "access", "id")
#: Additional line ends of Unicode.
_LINE_ENDS = ("\x85", "\u2028", "\u2029")

GOOD, BAD, BUSY = "green", "red", "yellow"
_COLORS = {"COMPLETE": GOOD, "ONLINE": GOOD, "FAILED": BAD, "OFFLINE": BAD, "PROGRESS": BUSY, "ENROLLING": BUSY}

Row = Mapping[str, Any]
NO_TEXT: Mapping[str, str] = MappingProxyType({})
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Output:
    """The user's output options: the format, and for lists the columns, order and number of rows."""

    form: str = "table"
    columns: tuple[str, ...] = ()
    #: A column; the suffix ``:desc`` reverses the order.
    sort: str | None = None
    limit: int | None = None

    @property
    def is_data(self) -> bool:
        """Whether the format shows the API's objects."""
        return self.form in DATA

    @property
    def data_form(self) -> str:
        """The format for values without columns: YAML, unless JSON is requested."""
        return self.form if self.is_data else "yaml"

    @property
    def first(self) -> int | None:
        """The number of rows to request from the service; None requests all, because they are sorted here."""
        return None if self.sort else self.limit


_form_option = click.option(
    "-o", "--output", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="The output format."
)
_column_option = click.option(
    "-c", "--column", "columns", multiple=True, metavar="NAME", help="Only this column or field; can be repeated."
)
_sort_option = click.option(
    "--sort", metavar="KEY", help="Sort by this column; KEY:desc reverses the order (node2 comes before node10)."
)

#: For streams, and for values without columns: the format only, as ``form``.
data_option = click.option(
    "-o", "--output", "form", type=click.Choice(("table", *DATA)), default="table", show_default=True,
    help="The output format.",
)  # fmt: skip


def output_option(command: F) -> F:
    """Add ``-o`` and ``-c`` to a command for one object. The command receives an ``Output``."""
    return _form_option(_column_option(_with_output(command)))


def list_options(limit: int | None = None) -> Callable[[F], F]:
    """Add ``-o``, ``-c``, ``--sort`` and ``--limit`` to a list command; ``limit`` is the default of ``--limit``."""

    def put(command: F) -> F:
        option = click.option(
            "--limit", type=click.IntRange(min=1), default=limit, show_default=limit is not None, metavar="N",
            help="Only the first N rows.",
        )  # fmt: skip
        return _sort_option(option(output_option(command)))

    return put


def _with_output(command: F) -> F:
    @wraps(command)
    def call(
        *args: Any, form: str, columns: tuple[str, ...], sort: str | None = None, limit: int | None = None, **more: Any
    ) -> Any:
        return command(*args, output=Output(form, columns, sort, limit), **more)

    return call  # type: ignore[return-value]  # F has other keywords than call


raw_option = click.option(
    "--raw", is_flag=True, help="Keep control sequences of the output, which a terminal executes."
)


def wants_color() -> bool:
    """Whether NO_COLOR (https://no-color.org) permits colors and bold text."""
    return not os.environ.get("NO_COLOR")


def open_console(*, stderr: bool = False) -> Console:
    """Return the terminal as a console of rich."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, color_system="auto" if wants_color() else None)


def echo(text: str = "", *, nl: bool = True, err: bool = False, raw: bool = False) -> None:
    """
    Print text, which may come from scripts, agents or the service. All commands print with this function.

    Control characters are shown on a terminal as escapes, unless ``raw``.
    """
    stream = sys.stderr if err else sys.stdout
    click.echo(clean_for(text, stream, raw=raw), nl=nl, err=err, color=True if raw else None)


def emit_bytes(content: bytes) -> None:
    """Print bytes unchanged, for files and pipes."""
    click.echo(content, nl=False)


@contextmanager
def explaining_write_errors(path: Path, what: str) -> Iterator[None]:
    """Raise BadInput for a file that cannot be written. ``what`` names the option in errors."""
    try:
        yield
    except OSError as problem:
        raise BadInput(f"cannot write {path} (named by {what}): {problem.strerror}") from problem


def emit_list(
    output: Output,
    rows: Sequence[Row],
    columns: Sequence[str],
    *,
    wide: Sequence[str] = (),
    order: str | None = None,
    cells: Callable[[Row], Row] | None = None,
    data: Any = None,
) -> None:
    """
    Print ``rows``. Tables show ``columns``, and wide ones also ``wide``; JSON and YAML show the complete objects.

    ``order`` is the default column of the sort order. ``cells`` returns values that replace those of an object in its
    columns. ``data`` is what JSON and YAML show instead of the rows.
    """
    if data is not None and output.is_data:
        emit_data(output.form, data)
        return
    displayed: list[tuple[Row, Row]] = [(row, {**row, **cells(row)} if cells else row) for row in rows]
    output = _find_columns(output, [*columns, *wide, *(key for _, cell in displayed for key in cell)])
    if key := output.sort or order:
        displayed = _sorted(displayed, key)
    displayed = displayed[: output.limit]
    if not output.is_data:
        listed = (*columns, *(wide if output.form == "wide" else ()))
        names = output.columns or (_table.order(listed) if output.form in ("table", "wide") else listed)
        _emit_rows(output.form, names, [cell for _, cell in displayed])
    elif output.columns:
        emit_data(output.form, [{name: cell.get(name) for name in output.columns} for _, cell in displayed])
    else:
        emit_data(output.form, [row for row, _ in displayed])


def _find_columns(output: Output, available: Iterable[str]) -> Output:
    """Return the output with the names of its columns, which may be given as in the header. Raises UsageError."""
    names = dict.fromkeys(available)
    by_title = {_title(name).lower(): name for name in names}

    def find(column: str) -> str:
        name = column if column in names else by_title.get(column.lower())
        if name is None:
            raise click.UsageError(f"there is no column {column!r}; there are {', '.join(names)}")
        return name

    if output.sort:
        column, colon, direction = output.sort.partition(":")
        output = replace(output, sort=find(column) + colon + direction)
    return replace(output, columns=tuple(map(find, output.columns)))


def _sorted(rows: list[tuple[Row, Row]], key: str) -> list[tuple[Row, Row]]:
    from natsort import natsort_keygen, ns

    column, _, direction = key.partition(":")
    if direction not in ("", "asc", "desc"):
        raise click.UsageError(f"{key!r} is not KEY, KEY:asc or KEY:desc")
    natural = natsort_keygen(alg=ns.IGNORECASE)
    return sorted(rows, key=lambda row: natural(inline(row[1].get(column))), reverse=direction == "desc")


def _emit_rows(form: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
    cells = [[inline(row.get(column)) for column in columns] for row in rows]
    if form == "name":
        _emit_lines(printable(_name(row)) for row in rows)
    elif form == "value":
        _emit_lines("\t".join(map(printable, row)) for row in cells)
    elif form == "csv":
        _emit_csv([columns, *cells])
    else:
        _emit_table(columns, cells, is_short=form == "table")


def _name(row: Row) -> str:
    name = inline(next((row[key] for key in _NAMES if row.get(key)), ""))
    # Commands refer to an object with versions by both.
    return f"{name}/{row['version']}" if isinstance(row.get("version"), int) else name


def _emit_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line)


def _emit_csv(rows: Iterable[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[printable(cell) for cell in row] for row in rows])
    click.echo(text.getvalue(), nl=False)


def emit_one(
    output: Output, thing: Row, fields: Sequence[str] | None = None, *, text: Mapping[str, str] = NO_TEXT
) -> None:
    """
    Print one object. A table shows one line for each of ``fields`` that the object has.

    ``text`` has the text of values in a table, for values that are not readable as YAML.
    """
    output = _find_columns(output, thing)
    if output.is_data:
        emit_data(output.form, {name: thing[name] for name in output.columns} if output.columns else thing)
        return
    displayed = thing if output.form == "wide" or fields is None else fields
    names = [name for name in output.columns or displayed if name in thing]
    if output.form in ("name", "csv"):
        _emit_rows(output.form, names, [thing])
    elif output.form == "value":
        _emit_lines(printable(inline(thing[name])) for name in names)
    else:
        rows = [[name, text[name] if name in text else block(thing[name])] for name in names]
        _emit_table(("field", "value"), rows, is_short=False)


def emit_value(output: Output, value: Any, *, raw: bool = False) -> None:
    """Print one value: text unchanged, unless JSON or YAML is requested. ``raw`` applies to terminals."""
    if output.is_data:
        emit_data(output.form, value)
    else:
        echo(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), raw=raw)


def emit_data(form: str, data: Any, *, stream: bool = False) -> None:
    """Print JSON or YAML. With ``stream``, each object is a JSON line or a YAML document."""
    if form == "json":
        click.echo(escape_controls(json.dumps(data, ensure_ascii=False, indent=None if stream else 2)))
    else:
        click.echo(to_yaml(data, explicit_start=stream), nl=False)


def to_yaml(data: Any, **how: Any) -> str:
    """Return ``data`` as YAML. Keys keep their order."""
    import yaml  # imported here because most commands print tables

    style: dict[str, Any] = {"sort_keys": False, "default_flow_style": False, "width": 120, **how}
    text: str = yaml.safe_dump(data, allow_unicode=True, **style)
    if has_controls(text) or any(odd in text for odd in _LINE_ENDS):
        # PyYAML writes these characters unescaped, and reads some of them differently
        text = yaml.safe_dump(data, **style)
    # PyYAML ends a document that is one plain scalar with a mark on a line of its own
    return text.removesuffix("\n...\n") + "\n" if text.endswith("\n...\n") else text


def inline(value: Any) -> str:
    """Return the text of a value in a cell of a list."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def join_labels(thing: Row) -> str:
    """Return the text of an object's labels in a cell of a list."""
    return ", ".join(f"{name}={value}" for name, value in sorted((thing.get("labels") or {}).items()))


def block(value: Any) -> str:
    """Return the text of a value with the width of the table: structures as YAML."""
    return to_yaml(value).rstrip("\n") if isinstance(value, dict | list) and value else inline(value)


def printable(text: str) -> str:
    """Return ``text`` with control characters shown, so that it cannot move the cursor or change colors."""
    return "\n".join(map(show_line, text.split("\n")))


def color(text: str) -> str:
    """Return the color of a status word, or "" for other text."""
    last = text.rpartition("_")[2]
    return _COLORS.get(last, "") if text.isupper() and not text.startswith("INIT_") else ""


def _title(column: str) -> str:
    return " ".join(word.upper() if word == "id" else word.capitalize() for word in column.split("_"))


def _emit_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, is_short: bool) -> None:
    """Print a table. ``is_short``: with short ids and times on a terminal."""
    titles = [_title(column) for column in columns]
    clean = [[printable(cell.removesuffix("\n")) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        _emit_plain_table(titles, clean)
        return
    cells: list[Sequence[str]] = [[row[place] for row in clean] for place in range(len(columns))]
    if is_short:
        now = datetime.now(UTC)
        cells = [_table.shorten(column, of_column, now) for column, of_column in zip(columns, cells, strict=True)]
    _draw(columns, titles, cells)


def _draw(columns: Sequence[str], titles: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """
    Draw a table, with the cells of each column, on a terminal, if necessary wider than it.

    In a table that is too wide, columns without text are left out, and the widest of the others are folded.
    """
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    drawn = list(zip(columns, titles, map(_table.natural_width, titles, cells), cells, strict=True))
    if sum(natural + _table.GAP for _, _, natural, _ in drawn) - _table.GAP > console.width:
        drawn = [column for column in drawn if any(column[-1])] or drawn
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _table.GAP, 0, 0))
    for column, title, natural, _ in drawn:
        least = _table.least_width(column, title, natural)
        table.add_column(title, overflow="fold", no_wrap=least == natural, min_width=least)
    for row in zip(*(of_column for *_, of_column in drawn), strict=True):
        table.add_row(*(Text(cell, style=color(cell)) for cell in row))
    console.print(table, crop=False)


def _emit_plain_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table for pipes and files, which have no width. Avoids rich, because its import is slow."""
    lines = [line for row in [titles, *rows] for line in zip_longest(*(cell.split("\n") for cell in row), fillvalue="")]
    widths = [max(map(len, column)) + _table.GAP for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
