"""Functions that read parameters, resources and files, and the resource around a nested stack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.hot.functions.base import Function, is_call, select
from stoker.hot.scope import ALL_ATTRIBUTES, UNKNOWN, Scope
from stoker.hot.words import clip, quote_word
from stoker.model.errors import StackValidationFailed


class GetParam(Function):
    """``{get_param: name}`` or ``{get_param: [name, key, index, …]}``: a parameter's value, or a part of it."""

    name = "get_param"
    since = "2013-05-23"
    condition_since = ""

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        name = argument[0] if isinstance(argument, list) and argument else argument
        if not isinstance(name, str) and (is_value or not is_call(name)):
            raise StackValidationFailed('"get_param" needs a parameter\'s name, or a list of a name and a path')

    def parameters(self, argument: Any) -> Iterable[str]:
        name = argument[0] if isinstance(argument, list) else argument
        return (name,) if isinstance(name, str) else ()

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        if isinstance(argument, str):
            return scope.parameter(argument)
        value = scope.parameter(argument[0])
        # As in Heat, a path that does not exist gives an empty text; templates rely on this.
        return UNKNOWN if value is UNKNOWN else select(value, argument[1:], missing="")


class GetResource(Function):
    """``{get_resource: name}``: the id of another resource, which is then created first."""

    name = "get_resource"
    since = "2013-05-23"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        # A computed name would hide the dependency.
        if not isinstance(argument, str):
            raise StackValidationFailed('"get_resource" needs the name of a resource')

    def references(self, argument: Any) -> Iterable[str]:
        return (argument,) if isinstance(argument, str) else ()

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        return scope.resource_id(argument)


#: From the first version on, the resource itself resolves the path; from the second, a resource without an attribute
#: means all its attributes.
_PATH_TO_RESOURCE = "2014-10-16"
_ALL_ATTRIBUTES = "2015-10-15"


class GetAttr(Function):
    """``{get_attr: [resource, attribute, key, index, …]}``: an attribute of another resource, or a part of it."""

    name = "get_attr"
    since = "2013-05-23"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        needed = 1 if version >= _ALL_ATTRIBUTES else 2
        if not isinstance(argument, list) or len(argument) < needed or not isinstance(argument[0], str):
            raise StackValidationFailed('"get_attr" needs a list: a resource\'s name, an attribute and perhaps a path')
        attribute = argument[1] if len(argument) > 1 else ""
        if not isinstance(attribute, str) and (is_value or not is_call(attribute)):
            raise StackValidationFailed('"get_attr": the attribute\'s name must be text')

    def references(self, argument: Any) -> Iterable[str]:
        return tuple(name for name in argument[:1] if isinstance(name, str)) if isinstance(argument, list) else ()

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        name, *rest = argument
        if not rest:
            return scope.attribute(name, ALL_ATTRIBUTES, ())
        attribute, *path = rest
        if not attribute:
            raise StackValidationFailed('"get_attr": the attribute\'s name must be text')
        if scope.version >= _PATH_TO_RESOURCE:
            return scope.attribute(name, attribute, tuple(path))
        value = scope.attribute(name, attribute, ())
        return UNKNOWN if value is UNKNOWN else select(value, path)


class GetFile(Function):
    """A function for including a file inline."""

    name = "get_file"
    since = "2013-05-23"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if not isinstance(argument, str) and (is_value or not is_call(argument)):
            raise StackValidationFailed('"get_file" needs the name of a file')

    def files(self, argument: Any) -> Iterable[str]:
        return (argument,) if isinstance(argument, str) else ()

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        try:
            return scope.file(argument)
        except KeyError:
            sentence = f'No content found in the "files" section for get_file path: {clip(argument)}'
            raise StackValidationFailed(sentence) from None


_FACADE_PARTS = ("metadata", "deletion_policy", "update_policy")


class ResourceFacade(Function):
    """``{resource_facade: metadata}``: in a nested template, what the resource that it is has been given."""

    name = "resource_facade"
    since = "2013-05-23"

    def check(self, argument: Any, version: str, *, is_value: bool) -> None:
        if argument not in _FACADE_PARTS:
            parts = ", ".join(_FACADE_PARTS)
            raise StackValidationFailed(f'"resource_facade" needs one of {parts}, not {quote_word(argument)}')

    def evaluate(self, argument: Any, scope: Scope) -> Any:
        return scope.facade(argument)
