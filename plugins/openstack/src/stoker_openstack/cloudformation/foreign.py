"""
Translates CloudFormation functions to HOT.

CloudFormation templates use these functions, and so may the oldest versions of HOT. Each call becomes the equivalent
HOT function or its value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from stoker.hot.calls import LITERAL
from stoker.hot.syntaxes import ReplacedCall
from stoker.model.errors import StackValidationFailed

#: From this version on, HOT has none of these functions.
REPLACED_UNTIL = "2014-10-16"

REPLACED: Mapping[str, ReplacedCall] = {
    "Ref": ReplacedCall("The value of a parameter, or the reference of a resource.", REPLACED_UNTIL),
    "Fn::GetAZs": ReplacedCall("The availability zones of a region.", REPLACED_UNTIL),
    "Fn::Join": ReplacedCall("A list's items with a delimiter between them.", REPLACED_UNTIL),
    "Fn::Replace": ReplacedCall("A text with words replaced.", REPLACED_UNTIL),
    "Fn::Base64": ReplacedCall("The text itself: the service that passes it to a server encodes it.", REPLACED_UNTIL),
    "Fn::ResourceFacade": ReplacedCall("What the resource that a nested stack is has been given.", REPLACED_UNTIL),
    "Fn::GetAtt": ReplacedCall("An attribute of a resource."),
    "Fn::FindInMap": ReplacedCall("A value of the section Mappings."),
    "Fn::If": ReplacedCall("One of two values, as a condition says."),
    "Fn::Equals": ReplacedCall("Whether two values are the same."),
    "Fn::And": ReplacedCall("Whether all conditions hold."),
    "Fn::Or": ReplacedCall("Whether any condition holds."),
    "Fn::Not": ReplacedCall("Whether a condition does not hold."),
}
#: Without a cloud there is one zone, with OpenStack's usual name.
ZONES = ["nova"]
_CONDITIONS = {"Fn::If": "if", "Fn::Equals": "equals", "Fn::And": "and", "Fn::Or": "or"}


def rewrite(value: Any, resources: Collection[str], mappings: Mapping[str, Any] | None, version: str = "") -> Any:
    """
    Translate each foreign call in ``value`` to HOT, innermost first.

    ``mappings`` None: the template is HOT of ``version``, and only the functions of that version are calls. Raises
    StackValidationFailed.
    """
    if isinstance(value, list):
        return [rewrite(item, resources, mappings, version) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        [(name, argument)] = value.items()
        if name == LITERAL:
            return value
        if name in REPLACED and (mappings is not None or version < (REPLACED[name].until or "")):
            return _call(name, rewrite(argument, resources, mappings, version), resources, mappings or {})
    return {key: rewrite(part, resources, mappings, version) for key, part in value.items()}


def _call(name: str, argument: Any, resources: Collection[str], mappings: Mapping[str, Any]) -> Any:
    if name == "Ref":
        if not isinstance(argument, str):
            raise StackValidationFailed('"Ref" needs the name of a parameter or of a resource')
        return {"get_resource": argument} if argument in resources else {"get_param": argument}
    if name == "Fn::FindInMap":
        return _find_in_map(argument, mappings)
    if name in _CONDITIONS:
        return {_CONDITIONS[name]: _condition_name(argument)}
    return _WORDS[name](argument)


def _find_in_map(argument: Any, mappings: Mapping[str, Any]) -> Any:
    if not isinstance(argument, list) or len(argument) != 3:
        raise StackValidationFailed('"Fn::FindInMap" needs a list: the name of a mapping and two keys')
    name, *keys = argument
    if not isinstance(name, str) or not isinstance(mappings.get(name), dict):
        raise StackValidationFailed(f'"Fn::FindInMap": there is no mapping {name!r}')
    return {"Fn::FindInMap": [mappings[name], *keys]}


def _condition_name(conditions: Any) -> Any:
    """``{Condition: name}`` is the form of a condition's name in a list of conditions."""
    if not isinstance(conditions, list):
        return conditions
    return [
        condition["Condition"] if isinstance(condition, dict) and condition.keys() == {"Condition"} else condition
        for condition in conditions
    ]


def _pair(name: str, argument: Any, what: str) -> tuple[Any, Any]:
    if not isinstance(argument, list) or len(argument) != 2:
        raise StackValidationFailed(f'"{name}" needs a list: {what}')
    first, second = argument
    return first, second


def _get_att(argument: Any) -> Any:
    parts = argument.split(".", 1) if isinstance(argument, str) else argument
    return {"get_attr": list(_pair("Fn::GetAtt", parts, "the name of a resource and of an attribute"))}


def _join(argument: Any) -> Any:
    return {"list_join": list(_pair("Fn::Join", argument, "a delimiter and a list"))}


def _replace(argument: Any) -> Any:
    params, template = _pair("Fn::Replace", argument, "a map of words and a text")
    return {"str_replace": {"template": template, "params": params}}


def _facade(argument: Any) -> Any:
    parts = {"Metadata": "metadata", "DeletionPolicy": "deletion_policy", "UpdatePolicy": "update_policy"}
    if not isinstance(argument, str) or argument not in parts:
        raise StackValidationFailed(f'"Fn::ResourceFacade" needs one of {", ".join(parts)}')
    return {"resource_facade": parts[argument]}


def _not(argument: Any) -> Any:
    if not isinstance(argument, list) or len(argument) != 1:
        raise StackValidationFailed('"Fn::Not" needs a list of one condition')
    return {"not": _condition_name(argument)[0]}


_WORDS: Mapping[str, Callable[[Any], Any]] = {
    "Fn::GetAtt": _get_att,
    "Fn::Join": _join,
    "Fn::Replace": _replace,
    "Fn::Base64": lambda argument: argument,
    "Fn::GetAZs": lambda _region: list(ZONES),
    "Fn::ResourceFacade": _facade,
    "Fn::Not": _not,
}
