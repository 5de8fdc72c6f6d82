"""Functions that make texts, or take them apart."""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import quote, urlencode, urlunsplit

from stoker.hot.functions.base import Function, as_json, as_text, check_length, index_of, is_call
from stoker.hot.scope import Scope
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import StackValidationFailed

#: Maximum number of words times characters: some seconds at worst, and far more than any real template needs.
_MOST_WORK = 500_000_000
#: From this version on, maps and lists are values for ``str_replace`` and items for ``list_join``, which takes several
#: lists.
_JSON_SINCE = "2015-10-15"


class StrReplace(Function):
    """
    ``{str_replace: {template: text, params: {word: value, …}}}``: the text with every word replaced.

    Longer words go first, equal ones by the alphabet, and what was put in is never searched again.
    """

    name = "str_replace"
    since = "2013-05-23"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if not isinstance(argument, dict) or set(argument) != {"template", "params"}:
            raise StackValidationFailed('"str_replace" needs a map with exactly "template" and "params"')
        template, params = argument["template"], argument["params"]
        if not isinstance(template, str) and (is_value or not is_call(template)):
            raise StackValidationFailed(f'"str_replace" template must be text, not {kind_of(template)}')
        if not isinstance(params, dict):
            raise StackValidationFailed(f'"str_replace" params must be a map, not {kind_of(params)}')

    def evaluate(self, argument: Any, scope: Scope) -> str:
        template, params = argument["template"], argument["params"]
        words = sorted(params, key=lambda word: (-len(word), word))
        if "" in params:
            raise StackValidationFailed('"str_replace" params must not have an empty key')
        values = {word: _replacement(word, params[word], scope.version) for word in words}
        return replace(StrReplace.name, template, values)


class StrReplaceStrict(StrReplace):
    """``{str_replace_strict: {template, params}}``: as ``str_replace``, and every word must be in the text."""

    name = "str_replace_strict"
    since = "2017-02-24"

    def evaluate(self, argument: Any, scope: Scope) -> str:
        text = super().evaluate(argument, scope)
        for word in argument["params"]:
            if word not in argument["template"]:
                raise StackValidationFailed(f'"{self.name}": {quote_word(word)} does not occur in the template')
        return text


class StrReplaceVstrict(StrReplaceStrict):
    """``{str_replace_vstrict: {template, params}}``: as ``str_replace_strict``, and no value may be empty."""

    name = "str_replace_vstrict"
    since = "2017-09-01"

    def evaluate(self, argument: Any, scope: Scope) -> str:
        text = super().evaluate(argument, scope)
        for word, value in argument["params"].items():
            if value is None or value in ("", [], {}):
                raise StackValidationFailed(f'"{self.name}": the value for {quote_word(word)} is empty')
        return text


def replace(name: str, template: str, values: dict[str, str]) -> str:
    """Replace the words in the order of ``values``. Raises StackValidationFailed if that would take too long."""
    if len(values) * len(template) > _MOST_WORK:
        raise StackValidationFailed(f'"{name}": {len(values)} words are too many for a text that long')
    # Even positions hold text that is still searched, odd positions hold inserted text.
    pieces = [template]
    for word, value in values.items():
        searched: list[str] = []
        for index, piece in enumerate(pieces):
            if index % 2 or word not in piece:
                searched.append(piece)
            else:
                first, *rest = piece.split(word)
                searched.append(first)
                for part in rest:
                    searched += (value, part)
        pieces = searched
    check_length(name, sum(map(len, pieces)))
    return "".join(pieces)


def _replacement(word: str, value: Any, version: str) -> str:
    if value is None:
        return ""
    if isinstance(value, (str, bool, int, float)):
        return str(value)
    if version < _JSON_SINCE:
        raise StackValidationFailed(f'"str_replace": {quote_word(word)} must be text or a number, not {kind_of(value)}')
    return as_json(StrReplace.name, value)


class StrSplit(Function):
    """``{str_split: [delimiter, text, index]}``: the parts of a text, or the one at ``index``; -1 is the last."""

    name = "str_split"
    since = "2015-10-15"
    counts = (2, 3)
    parts = "a delimiter, a text and perhaps an index"

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        delimiter, text = argument[:2]
        if text is None:
            return None
        if not isinstance(delimiter, str) or not delimiter or not isinstance(text, str):
            raise StackValidationFailed('"str_split" needs a delimiter and a text')
        parts = text.split(delimiter)
        return parts if len(argument) == 2 else parts[_part_index(argument[2], len(parts))]


def _part_index(value: Any, count: int) -> int:
    try:
        index = index_of(value)
    except ValueError:
        raise StackValidationFailed('"str_split": the index must be a whole number') from None
    if not -count <= index < count:
        raise StackValidationFailed(f'"str_split": there is no part {index}, only 0 to {count - 1}')
    return index


class ListJoin(Function):
    """``{list_join: [delimiter, list, list, …]}``: the items of all lists with the delimiter between them."""

    name = "list_join"
    since = "2013-05-23"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if not isinstance(argument, list) or len(argument) < 2:
            raise StackValidationFailed('"list_join" needs a list: a delimiter and at least one list')
        if len(argument) > 2 and version < _JSON_SINCE:
            raise StackValidationFailed(f'"list_join" takes several lists only from version {_JSON_SINCE}')
        for part in argument[1:]:
            if not _is_nothing(part, version) and not isinstance(part, list) and (is_value or not is_call(part)):
                raise StackValidationFailed(f'"list_join" joins lists, not {kind_of(part)}')

    def evaluate(self, argument: Any, scope: Scope) -> str:
        delimiter, *lists = argument
        if not isinstance(delimiter, str):
            raise StackValidationFailed(f'"list_join" delimiter must be text, not {kind_of(delimiter)}')
        texts = [_item_text(item, scope.version) for items in lists for item in items or ()]
        check_length(self.name, sum(map(len, texts)) + len(delimiter) * len(texts))
        return delimiter.join(texts)


def _is_nothing(value: Any, version: str) -> bool:
    # In a json parameter, empty text means no value.
    return value is None or (value == "" and version >= _JSON_SINCE)


def _item_text(item: Any, version: str) -> str:
    if item is None:
        return ""
    if isinstance(item, str):
        return item
    if version >= _JSON_SINCE and isinstance(item, (dict, list)):
        return as_json(ListJoin.name, item)
    allowed = "text, maps or lists" if version >= _JSON_SINCE else "text"
    raise StackValidationFailed(f'"list_join": items must be {allowed}, not {kind_of(item)}')


#: The algorithms with a fixed digest length.
_ALGORITHMS = frozenset(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake_"))


class Digest(Function):
    """``{digest: [algorithm, value]}``: the value's hash in hexadecimal digits."""

    name = "digest"
    since = "2015-04-30"
    counts = (2,)
    parts = "an algorithm and a value"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        super().check(argument, version, is_value=is_value)
        if isinstance(argument[0], str) and argument[0].lower() not in _ALGORITHMS:
            names = ", ".join(sorted(_ALGORITHMS))
            raise StackValidationFailed(f'"digest" knows no algorithm {quote_word(argument[0])}: {names}')

    def evaluate(self, argument: Any, scope: Scope) -> str:
        algorithm, value = argument
        if not isinstance(algorithm, str) or not isinstance(value, str):
            raise StackValidationFailed('"digest" needs an algorithm and a value, both text')
        try:
            raw = value.encode("latin-1")
        except UnicodeEncodeError:
            raise StackValidationFailed('"digest": the value has characters outside of Latin-1') from None
        return hashlib.new(algorithm.lower(), raw, usedforsecurity=False).hexdigest()


_URL_PARTS = ("scheme", "username", "password", "host", "port", "path", "query", "fragment")


class MakeUrl(Function):
    """``{make_url: {scheme, username, password, host, port, path, query, fragment}}``: a URL of its parts."""

    name = "make_url"
    since = "2017-09-01"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        is_possible = isinstance(argument, dict) and set(argument) <= set(_URL_PARTS)
        if not is_possible and (is_value or not is_call(argument)):
            raise StackValidationFailed(f'"make_url" needs a map of {", ".join(_URL_PARTS)}')

    def evaluate(self, argument: Any, scope: Scope) -> str:
        parts = {name: value for name, value in argument.items() if value is not None and value != ""}
        scheme, place, query = _url_text(parts, "scheme"), _netloc(parts), _query(parts.get("query"))
        path, fragment = _url_text(parts, "path"), _url_text(parts, "fragment")
        if ":" in scheme:
            raise StackValidationFailed(f'"make_url": {quote_word(scheme)} is no scheme')
        return urlunsplit((scheme, place, quote(path), query, quote(fragment)))


def _netloc(parts: dict[str, Any]) -> str:
    user, password, host = (_url_text(parts, name) for name in ("username", "password", "host"))
    port = _port(parts.get("port"))
    if not host and (user or password or port):
        raise StackValidationFailed('"make_url" needs a "host" for a user, a password or a port')
    # Some services require a password without a user.
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    return f"{login}{'@' if login else ''}{_host(host)}{port}"


def _host(host: str) -> str:
    """A host as in a URL, where an address of IPv6 is in brackets."""
    plain = quote(host[1:-1] if host.startswith("[") and host.endswith("]") else host, safe=":")
    return f"[{plain}]" if ":" in plain else plain


def _port(value: Any) -> str:
    if value is None or value == "":
        return ""
    try:
        number = index_of(value)
    except ValueError:
        number = 0
    if not 1 <= number <= 65535:
        raise StackValidationFailed(f'"make_url": {quote_word(value)} is no port')
    return f":{number}"


def _query(query: Any) -> str:
    if query is None:
        return ""
    if not isinstance(query, dict):
        raise StackValidationFailed(f'"make_url" query must be a map, not {kind_of(query)}')
    for name, value in query.items():
        if isinstance(value, dict | list):
            raise StackValidationFailed(f'"make_url" query: {quote_word(name)} must be text, not {kind_of(value)}')
    return urlencode({name: "" if value is None else value for name, value in query.items()}, safe="/")


def _url_text(parts: dict[str, Any], name: str) -> str:
    return as_text(MakeUrl.name, f" {name}", parts.get(name, ""))
