"""The functions of CloudFormation's syntax that HOT lacks."""

from __future__ import annotations

import re
from typing import Any

from stoker.hot.functions.base import Function
from stoker.hot.scope import Scope
from stoker.hot.text import read_json
from stoker.hot.words import kind_of, quote_word
from stoker.model.errors import StackValidationFailed

_MEMBER = re.compile(r"\.member\.(?P<index>\d{1,9})\.(?P<part>[^=]*)=(?P<value>.*)", re.DOTALL)


class FindInMap(Function):
    """``{"Fn::FindInMap": [mapping, key, key]}``: a value of the section Mappings."""

    name = "Fn::FindInMap"
    condition_since = ""
    until = ""

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        value, *keys = argument
        for key in keys:
            if not isinstance(key, str) or not isinstance(value, dict) or key not in value:
                raise StackValidationFailed(f'"Fn::FindInMap": the mapping has no {quote_word(key)}')
            value = value[key]
        return value


class MemberListToMap(Function):
    """
    ``{"Fn::MemberListToMap": [key, value, list]}``: ``.member.0.Name=a``, ``.member.0.Value=b``, … as ``{a: b}``.

    The form in which query APIs write lists of pairs.
    """

    name = "Fn::MemberListToMap"
    since = "2013-05-23"
    until = "2014-10-16"
    counts = (3,)
    parts = "the names of key and value, and a list"

    def evaluate(self, argument: Any, scope: Scope) -> dict[str, str]:
        key, value, members = argument
        if not isinstance(key, str) or not isinstance(value, str):
            raise StackValidationFailed('"Fn::MemberListToMap": the names of key and value must be text')
        if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
            raise StackValidationFailed('"Fn::MemberListToMap": the third part must be a list of texts')
        pairs: dict[str, dict[str, str]] = {}
        for match in filter(None, map(_MEMBER.fullmatch, members)):
            pairs.setdefault(match["index"], {})[match["part"]] = match["value"]
        return {pair[key]: pair[value] for pair in pairs.values() if key in pair and value in pair}


class Select(Function):
    """``{"Fn::Select": [index, list]}``: the item of a list, or of a map by its key; nothing there is an empty text."""

    name = "Fn::Select"
    since = "2013-05-23"
    condition_since = ""
    until = "2015-10-15"
    counts = (2,)
    parts = "an index and a list, or a key and a map"

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        index, among = argument
        if isinstance(among, str) and among:
            try:  # JSON text, for example from an output
                among = read_json(among)
            except ValueError:
                raise StackValidationFailed('"Fn::Select" selects from a list or a map, not from text') from None
        if among is None or among == "":
            return ""
        if isinstance(among, dict):
            if not isinstance(index, str):
                raise StackValidationFailed(f'"Fn::Select": the key of a map must be text, not {kind_of(index)}')
            return among.get(index, "")
        if not isinstance(among, list):
            raise StackValidationFailed(f'"Fn::Select" selects from a list or a map, not from {kind_of(among)}')
        number = _number(index)
        return among[number] if 0 <= number < len(among) else ""


def _number(index: Any) -> int:
    try:
        if not isinstance(index, (bool, float)):
            return int(index)
    except (TypeError, ValueError):
        pass
    raise StackValidationFailed('"Fn::Select": the index of a list must be a whole number')


class Split(Function):
    """``{"Fn::Split": [delimiter, text]}``: the parts of a text."""

    name = "Fn::Split"
    since = "2013-05-23"
    until = "2014-10-16"
    counts = (2,)
    parts = "a delimiter and a text"

    def evaluate(self, argument: Any, scope: Scope) -> list[str]:
        delimiter, text = argument
        if not isinstance(delimiter, str) or not delimiter or not isinstance(text, str):
            raise StackValidationFailed('"Fn::Split" needs a delimiter and a text')
        return text.split(delimiter)


FUNCTIONS = (FindInMap(), MemberListToMap(), Select(), Split())
