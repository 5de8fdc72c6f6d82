"""Checks the unevaluated calls in a template: functions, arguments and names must exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct

from stoker.hot.calls import Call, calls
from stoker.hot.conditions import check_if
from stoker.hot.flaw import Flaw, Flaws, flaw
from stoker.hot.functions import Function, known_in, lookup
from stoker.hot.paths import Path, dotted_path
from stoker.hot.versions import pseudo_parameters
from stoker.hot.words import clip, did_you_mean, quote_word, suggest
from stoker.model.errors import InvalidTemplateReference, StackValidationFailed, StokerError, UserParameterMissing


class Names(Struct, frozen=True):
    """The names that calls may refer to."""

    version: str
    resources: Collection[str]
    parameters: Collection[str]
    #: None if the files are unknown; then file names are not checked.
    files: Mapping[str, str] | None
    #: Whether to suggest similar names, which takes time.
    hints: bool = True


def check_calls(value: Any, path: Path, names: Names, flaws: Flaws) -> None:
    """Check all calls in ``value`` and add each problem to ``flaws``."""
    if not value:
        return
    functions = known_in(names.version)
    for call in calls(value, path):
        try:
            if call.name == "if":
                check_if(call.argument, names.version, call.path)
            elif call.name in functions:  # a function of another version only is data in this one
                _check_call(call, names, flaws)
        except Flaw as problem:
            flaws.add(problem)


def _check_call(call: Call, names: Names, flaws: Flaws) -> None:
    function = _function(call, names.version)
    for resource in function.references(call.argument):
        if resource not in names.resources:
            flaws.add(_no_resource(resource, _format_path(call.path), (*call.path, call.name), names))
    for parameter in function.parameters(call.argument):
        if parameter not in names.parameters and parameter not in pseudo_parameters(names.version):
            hint = _sentence(parameter, names.parameters, names)
            sentence = f"The Parameter ({clip(parameter)}) was not provided.{hint}"
            flaws.add(_of_property(sentence, call, UserParameterMissing))
    if names.files is not None:
        _check_files(function.files(call.argument), call, names)


def check_depends_on(required: tuple[str, ...], path: Path, names: Names, flaws: Flaws) -> None:
    """Check that the resources named in ``depends_on`` exist."""
    for name in required:
        if name not in names.resources:
            flaws.add(_no_resource(name, str(path[1]), (*path, "depends_on"), names))


def _function(call: Call, version: str) -> Function:
    """The called function, after it has checked its argument."""
    place = (*call.path, call.name)
    try:
        function = lookup(call.name, version)
        function.check(call.argument, version, is_value=False)
    except StokerError as error:
        raise Flaw(error.message, place, type(error), place=dotted_path(place)) from None
    return function


def _no_resource(name: str, shown: str, place: Path, names: Names) -> Flaw:
    hint = _sentence(name, names.resources, names)
    sentence = f"The specified reference {quote_word(name)} (in {shown}) is incorrect.{hint}"
    return Flaw(sentence, place, InvalidTemplateReference)


def _format_path(path: Path) -> str:
    """The place in Heat's notation: ``a.Properties.value``."""
    if path[0] != "resources" or len(path) < 3:
        return dotted_path(path)
    return dotted_path((path[1], str(path[2]).title().replace("_", ""), *path[3:]))


def _of_property(sentence: str, call: Call, kind: type[StokerError]) -> Flaw:
    """A flaw in the words of Heat, which reports it for the property as a whole."""
    path = (*call.path, call.name)
    if call.path[0] == "resources" and len(call.path) > 3 and call.path[2] == "properties":
        return Flaw(sentence, path, kind, error="Property error", place=dotted_path(call.path[:4]))
    return Flaw(sentence, path, kind)


def _sentence(word: str, candidates: Iterable[str], names: Names) -> str:
    """A hint to append to one of Heat's sentences."""
    return f" {suggest(word, candidates)}".rstrip() if names.hints else ""


def _check_files(wanted: Iterable[str], call: Call, names: Names) -> None:
    files = names.files or {}
    for name in wanted:
        if name not in files:
            hint = did_you_mean(name, files) if names.hints else ""
            sentence = f'No content found in the "files" section for get_file path: {clip(name)}{hint}'
            raise _of_property(sentence, call, StackValidationFailed)
        if not isinstance(files[name], str):
            raise flaw(call.path, f"the file {clip(name)} is not text")
