"""
``{"Fn::MemberListToMap": [key, value, list]}``: ``.member.0.Name=a``, ``.member.0.Value=b``, … as ``{a: b}``.

The form in which query APIs write lists of pairs.
"""

from __future__ import annotations

import re
from typing import Any

from stoker.hot.scope import Scope
from stoker.model.errors import StackValidationFailed

NAME = "Fn::MemberListToMap"
SINCE = "2013-05-23"
UNTIL = "2014-10-16"

_MEMBER = re.compile(r"\.member\.(?P<index>\d{1,9})\.(?P<part>[^=]*)=(?P<said>.*)", re.DOTALL)


def check(argument: Any, _version: str) -> None:
    if not isinstance(argument, list) or len(argument) != 3:
        raise StackValidationFailed('"Fn::MemberListToMap" needs a list: the names of key and value, and a list')


def evaluate(argument: Any, scope: Scope) -> dict[str, str]:
    check(argument, scope.version)
    key, value, members = argument
    if not isinstance(key, str) or not isinstance(value, str):
        raise StackValidationFailed('"Fn::MemberListToMap": the names of key and value must be text')
    if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
        raise StackValidationFailed('"Fn::MemberListToMap": the third part must be a list of texts')
    pairs: dict[str, dict[str, str]] = {}
    for match in filter(None, map(_MEMBER.fullmatch, members)):
        pairs.setdefault(match["index"], {})[match["part"]] = match["said"]
    return {pair[key]: pair[value] for pair in pairs.values() if key in pair and value in pair}
