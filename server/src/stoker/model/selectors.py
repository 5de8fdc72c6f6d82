"""
Selectors: conditions over labels and facts that select servers. Pure functions.

The grammar, where ``,`` means ``and``::

    expression  = conjunction {"or" conjunction}
    conjunction = term {("and" | ",") term}
    term        = "not" term | "(" expression ")" | condition
    condition   = NAME ("=" | "!=" | "<" | "<=" | ">" | ">=" | "~") [VALUE]
                | NAME ["not"] "in" "(" VALUE {"," VALUE} ")"
                | NAME "exists"

A value with other characters than letters, digits and ``_ . / : @ + * ? -`` is put in quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from stoker.model.errors import Invalid
from stoker.model.server import FACT_NAMES, LABELS

#: Limits: characters of a selector, conditions in it, and levels of parentheses and ``not``.
LONGEST, MOST, DEEPEST = 2048, 64, 16
_LABEL, _FACT = "label.", "fact."
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<operator>!=|<=|>=|[=<>~(),])
      | (?P<quoted>"[^"]*"|'[^']*')
      | (?P<word>[\w./:@+*?-]+)
      | (?P<wrong>\S)
    )""",
    re.VERBOSE | re.ASCII,
)
_NAME = re.compile(r"[A-Za-z0-9][\w./-]*", re.ASCII)
_KEYWORDS = ("and", "or", "not", "in", "exists")
_PIECES = re.compile(r"\d+|[A-Za-z]+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


class Selectable(NamedTuple):
    """What a selector sees of a server."""

    labels: Mapping[str, str]
    facts: Mapping[str, Any]


_Test = Callable[[Selectable], bool]


@dataclass(frozen=True)
class Selector:
    """
    Selects the servers that have all ``labels`` and match ``text``.

    ``labels`` is the form of requests in JSON; ``parse`` returns a selector with a text. Not a condition means that
    every server matches.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None

    def matches(self, server: Selectable | None) -> bool:
        """Return whether the selector selects the server. None stands for a server that does not exist."""
        if server is None or not self.labels.items() <= server.labels.items():
            return False
        return self._parsed is None or self._parsed.test(server)

    @property
    def names_facts(self) -> bool:
        """Whether the facts of a server decide."""
        return self._parsed is not None and self._parsed.names_facts

    @cached_property
    def required_labels(self) -> Mapping[str, str]:
        """Labels that every selected server has."""
        return {**self.labels, **(self._parsed.required if self._parsed else {})}

    @cached_property
    def _parsed(self) -> _Parsed | None:
        return None if self.text is None else _parse(self.text)

    def to_json(self) -> dict[str, Any]:
        """Return the members ``labels`` and ``selector`` of a request."""
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {**labels, **({} if self.text is None else {"selector": self.text})}

    def __str__(self) -> str:
        parts = [f"{name}={value}" for name, value in self.labels.items()]
        return " and ".join([", ".join(parts), f"({self.text})"] if parts and self.text else parts or [self.text or ""])


def parse(text: str) -> Selector:
    """Return the selector that the text describes. Raises Invalid, which names the column of the error."""
    _parse(text)
    return Selector(text=text)


def select(labels: Mapping[str, str] | None, text: str | None) -> Selector | None:
    """Return the selector of a request, or None if it has neither labels nor a text. Raises Invalid."""
    if text is not None:
        _parse(text)
    return None if labels is None and text is None else Selector(labels=labels or {}, text=text)


def join(selectors: Sequence[Selector]) -> Selector:
    """Return the selector of the servers that every one of ``selectors`` selects."""
    return selectors[0] if len(selectors) == 1 else parse(" and ".join(f"({selector})" for selector in selectors))


class _Parsed(NamedTuple):
    test: _Test
    #: Labels that the conditions at the top require.
    required: Mapping[str, str]
    names_facts: bool


class _Token(NamedTuple):
    kind: str
    text: str
    #: From 1.
    column: int


class _Term(NamedTuple):
    test: _Test
    #: Conditions NAME=VALUE without which the term does not hold.
    equalities: Mapping[str, str] = MappingProxyType({})


@lru_cache(maxsize=256)
def _parse(text: str) -> _Parsed:
    parser = _Parser(text)
    test, equalities = parser.parse()
    required = {
        name.removeprefix(_LABEL): value
        for name, value in equalities.items()
        if name.startswith(_LABEL) or not _may_be_fact(name)
    }
    return _Parsed(test, required, any(_may_be_fact(name) for name in parser.names))


class _Parser:
    """Parses one text by recursive descent."""

    def __init__(self, text: str) -> None:
        if len(text) > LONGEST:
            raise Invalid(f"the selector has {len(text)} characters; it may have {LONGEST}")
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0
        self.names: list[str] = []

    def parse(self) -> _Term:
        """Return the whole expression."""
        if self._peek().kind == "end":
            raise self._error("a condition")
        term = self._disjunction()
        if self._peek().kind != "end":
            raise self._error("'and', 'or' or the end")
        return term

    def _disjunction(self) -> _Term:
        terms = [self._conjunction()]
        while self._take("or"):
            terms.append(self._conjunction())
        if len(terms) == 1:
            return terms[0]
        tests = [term.test for term in terms]
        return _Term(lambda server: any(test(server) for test in tests))

    def _conjunction(self) -> _Term:
        tests, equalities = list[_Test](), dict[str, str]()
        while True:
            column = self._peek().column
            term = self._term()
            tests.append(term.test)
            for name, value in term.equalities.items():
                if equalities.setdefault(name, value) != value and not _may_be_fact(name):
                    raise Invalid(f"the selector, column {column}: {name} cannot have two values at once")
            if not self._take("and", ","):
                break
        if len(tests) == 1:
            return term
        return _Term(lambda server: all(test(server) for test in tests), equalities)

    def _term(self) -> _Term:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Invalid(f"the selector, column {self._peek().column}: more than {DEEPEST} levels")
        try:
            if self._take("not"):
                negated = self._term().test
                return _Term(lambda server: not negated(server))
            if self._take("("):
                inner = self._disjunction()
                self._expect(")")
                return inner
            return self._condition()
        finally:
            self._depth -= 1

    def _condition(self) -> _Term:
        token = self._next()
        name = token.text
        if token.kind != "word" or name in _KEYWORDS or not _NAME.fullmatch(name):
            raise self._error("the name of a label or a fact", token)
        self.names.append(name)
        if len(self.names) > MOST:
            raise Invalid(f"the selector has more than {MOST} conditions")
        values = _reader(name)
        if self._take("exists"):
            return _Term(lambda server: bool(values(server)))
        if self._take("in"):
            return _Term(self._membership(values))
        if self._take("not"):
            self._expect("in")
            member = self._membership(values)
            return _Term(lambda server: not member(server))
        return self._relation(name, values)

    def _relation(self, name: str, values: Callable[[Selectable], list[Any]]) -> _Term:
        operator = self._next()
        if operator.kind != "operator" or operator.text not in _OPERATORS:
            raise self._error("'=', '!=', '<', '<=', '>', '>=', '~', 'in', 'not in' or 'exists'", operator)
        token = self._peek()
        value = self._value(may_be_empty=operator.text in ("=", "!="))
        if operator.text in _ORDERS and _version(value) is None:
            raise self._error("a number or a version", token)
        test = _comparison(values, operator.text, value)
        return _Term(test, {name: value} if operator.text == "=" else {})

    def _membership(self, values: Callable[[Selectable], list[Any]]) -> _Test:
        self._expect("(")
        texts = [self._value()]
        while self._take(","):
            texts.append(self._value())
        self._expect(")")
        return lambda server: any(_equal(value, text) for value in values(server) for text in texts)

    def _value(self, *, may_be_empty: bool = False) -> str:
        token = self._peek()
        if token.kind == "quoted":
            return self._next().text[1:-1]
        if token.kind == "word" and token.text not in _KEYWORDS:
            return self._next().text
        if may_be_empty and (token.kind == "end" or token.text in (",", ")", "and", "or")):
            return ""
        raise self._error("a value", token)

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _take(self, *words: str) -> bool:
        token = self._peek()
        if token.kind in ("word", "operator") and token.text in words:
            self._next()
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._error(repr(word))

    def _error(self, expected: str, token: _Token | None = None) -> Invalid:
        token = token or self._peek()
        what = "the end" if token.kind == "end" else repr(token.text[:40])
        return Invalid(f"the selector, column {token.column}: expected {expected}, not {what}")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        column = match.start(kind) + 1
        if kind == "wrong":
            why = "the quote does not end" if match[kind] in "\"'" else "put the value in quotes"
            raise Invalid(f"the selector, column {column}: unexpected {match[kind]!r}: {why}")
        yield _Token(kind, match[kind], column)
    yield _Token("end", "", len(text) + 1)


def _may_be_fact(name: str) -> bool:
    if name.startswith(_LABEL):
        return False
    return name.startswith(_FACT) or name.partition(".")[0] in FACT_NAMES


def _reader(name: str) -> Callable[[Selectable], list[Any]]:
    """Return a function that returns a server's values of this name: one, several of a list, or none."""
    label, fact = name.removeprefix(_LABEL), name.removeprefix(_FACT)
    is_fact = _may_be_fact(name)
    path = fact.split(".")
    of_labels = path[0] == LABELS

    def read(server: Selectable) -> list[Any]:
        if not name.startswith(_FACT) and label in server.labels:
            return [server.labels[label]]
        if not is_fact:
            return []
        # never what an agent has sent under the same name
        return _values(_look_up({LABELS: server.labels} if of_labels else server.facts, path))

    return read


def _look_up(facts: Any, path: list[str]) -> Any:
    """Return the fact with this path, or None. Names of facts may themselves contain dots."""
    if not path:
        return facts
    if not isinstance(facts, Mapping):
        return None
    for length in range(1, len(path) + 1):
        inner = facts.get(".".join(path[:length]))
        if inner is not None and (value := _look_up(inner, path[length:])) is not None:
            return value
    return None


def _values(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [part for inner in value.values() for part in _values(inner)] or [""]
    return [part for part in value if part is not None] if isinstance(value, list) else [value]


def text_of(value: Any) -> str:
    """Return a fact or a label as selectors write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _equal(value: Any, text: str) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return bool(_NUMBER.fullmatch(text)) and value == float(text)
    return text_of(value) == text


def _version(value: Any) -> list[tuple[int, Any]] | None:
    """Return the sort key of a number or a version, or None for other values."""
    text = text_of(value)
    return _pieces(text) if text[:1].isdigit() or _NUMBER.fullmatch(text) else None


def _pieces(text: str) -> list[tuple[int, Any]]:
    return [(2, float(piece)) if piece.isdigit() else (1, piece) for piece in _PIECES.findall(text)]


_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "~")
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _comparison(values: Callable[[Selectable], list[Any]], operator: str, text: str) -> _Test:
    if operator == "=":
        return lambda server: any(_equal(value, text) for value in values(server))
    if operator == "!=":
        return lambda server: not any(_equal(value, text) for value in values(server))
    if operator == "~":
        pattern = re.compile(translate(text))
        return lambda server: any(pattern.match(text_of(value)) for value in values(server))
    version, compare = _version(text), _ORDERS[operator]
    number = float(text) if _NUMBER.fullmatch(text) else None

    def ordered(value: Any) -> bool:
        if number is not None and isinstance(value, int | float) and not isinstance(value, bool):
            return compare(value, number)
        other = _version(value)
        return other is not None and compare(other, version)

    return lambda server: any(ordered(value) for value in values(server))
