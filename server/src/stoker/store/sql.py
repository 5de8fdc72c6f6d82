"""
Statements: plain SQL in one text for both databases.

A module's statements are constants::

    _READY = sql("SELECT key FROM steps WHERE stack_id = :stack AND waiting = 0 LIMIT :limit")
    _EXPIRED = _CLAIMS.select("expires_at <= :at ORDER BY expires_at")  # the columns of a Repository

    tx.fetch_all(_READY, {"stack": stack_id, "limit": 10})

``:name`` is a parameter, except in quotes; its value has the form in which columns are stored (``rows``). Other values
may be given, too. PostgreSQL derives the type of a parameter from what surrounds it, and takes it for a text where
nothing does: write ``CAST(:now AS bigint)`` in a SELECT list, or when all the arguments of coalesce are parameters.

``@name`` or ``@name(arguments)`` is a fragment: what the two databases write in different ways.
``store.fragments`` lists all of them. A list is one parameter: a JSON text (``rows.dump(ids)``)::

    sql("SELECT id, name FROM servers WHERE id @in(ids) @for_update")

Text that several statements repeat is a constant of Python or a view. In f-strings, ``@`` and ``:`` need no escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache

from stoker.store.fragments import FRAGMENTS

#: A fragment with one level of parentheses in its arguments, text in quotes, a cast, and a parameter.
_FRAGMENT = re.compile(r"'[^']*'|@(?P<name>[a-z_]+)(?:\((?P<arguments>(?:[^()]|\([^()]*\))*)\))?")
_ARGUMENT = re.compile(r"(?:[^(),]|\([^()]*\))+")
_PARAMETER = re.compile(r"""'[^']*'|"[^"]*"|::|:(?P<name>[a-z_]\w*)""")


class Statement:
    """A statement for both databases. ``sql`` makes it; it is compared by identity."""

    def __init__(self, text: str, *, postgresql: str | None = None) -> None:
        self.text = text
        self._postgresql = text if postgresql is None else postgresql

    @cached_property
    def sqlite(self) -> str:
        """The text for SQLite, whose driver finds the parameters by their names."""
        return expand(self.text, "sqlite").rstrip()

    @cached_property
    def postgresql(self) -> tuple[bytes, tuple[str, ...]]:
        """The text for PostgreSQL, and the names of its parameters ``$1``, ``$2``…"""
        names: dict[str, int] = {}

        def number(match: re.Match[str]) -> str:
            if match["name"] is None:
                return match[0]
            return f"${names.setdefault(match['name'], len(names) + 1)}"

        text = _PARAMETER.sub(number, expand(self._postgresql, "postgresql")).rstrip()
        return text.encode(), tuple(names)

    @cached_property
    def for_update(self) -> Statement:
        """The same query, which locks its rows."""
        return Statement(f"{self.text} @for_update")

    def __repr__(self) -> str:
        return f"sql({self.text!r})"


def sql(text: str, *, postgresql: str | None = None) -> Statement:
    """Return a statement. ``postgresql`` is the text for PostgreSQL, if the whole statement differs."""
    return Statement(text, postgresql=postgresql)


def update(table: str, *names: str, key: Sequence[str] = ("id",)) -> Statement:
    """
    Return ``UPDATE table SET name = :name … WHERE key = :key_<key> …``.

    The parameters of the condition begin with ``key_``, because the same column may get a new value.
    """
    changes = ", ".join(f"{quote(name)} = :{name}" for name in names)
    return sql(f"UPDATE {table} SET {changes} WHERE {equal(*key, prefix='key_')}")


def insert(table: str, *names: str) -> Statement:
    """Return ``INSERT INTO table (name, …) VALUES (:name, …)``."""
    columns, values = (", ".join(quote(name) for name in names), ", ".join(f":{name}" for name in names))
    return sql(f"INSERT INTO {table} ({columns}) VALUES ({values})")


@cache
def insert_rows(table: str, names: tuple[str, ...], count: int, end: str = "") -> Statement:
    """Return ``INSERT INTO table (name, …) VALUES (:name_0, …), (:name_1, …) end``, for ``count`` rows."""
    values = (", ".join(f":{name}_{row}" for name in names) for row in range(count))
    columns = ", ".join(quote(name) for name in names)
    return sql(f"INSERT INTO {table} ({columns}) VALUES ({'), ('.join(values)}) {end}")


def delete(table: str, *names: str) -> Statement:
    """Return ``DELETE FROM table WHERE name = :name …``."""
    return sql(f"DELETE FROM {table} WHERE {equal(*names)}")


def delete_oldest(table: str) -> Statement:
    """
    Return the deletion of those of the ``:most`` oldest rows of a table whose time ``at`` is before ``:before``.

    Rows are added in the order of time, so the oldest have the smallest ``seq``, and the time needs no index.
    """
    oldest = f"SELECT seq, at FROM {table} ORDER BY seq LIMIT :most"
    return sql(f"DELETE FROM {table} WHERE seq IN (SELECT seq FROM ({oldest}) AS oldest WHERE at < :before)")


#: As ``sql``, for a query that is composed of conditions when it is needed: it is compiled once, too.
compose = lru_cache(maxsize=1000)(sql)


def equal(*names: str, alias: str = "", prefix: str = "") -> str:
    """Return the condition ``name = :name AND …``. ``alias`` is the table, ``prefix`` begins the parameters' names."""
    dot = alias and f"{alias}."
    return " AND ".join(f"{dot}{quote(name)} = :{prefix}{name}" for name in names)


#: Names of columns that are keywords of SQL.
_KEYWORDS = ("group", "limit", "offset")


def quote(name: str) -> str:
    """Return the name of a column as SQL needs it."""
    return f'"{name}"' if name in _KEYWORDS else name


def expand(text: str, dialect: str) -> str:
    """Replace the fragments of a text. Raises KeyError for an unknown one."""

    def replace(match: re.Match[str]) -> str:
        if match["name"] is None:
            return match[0]
        arguments = _ARGUMENT.findall(match["arguments"] or "")
        return FRAGMENTS[dialect][match["name"]].format(*(argument.strip() for argument in arguments))

    return _FRAGMENT.sub(replace, text)
