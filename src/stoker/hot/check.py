"""Check the calls in a template as written: known functions, sound arguments, names that exist. Raises flaws."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.hot.calls import Call, calls
from stoker.hot.conditions import check_if
from stoker.hot.flaw import Flaw, flaw
from stoker.hot.functions import Function, known_in, lookup
from stoker.hot.paths import Path, dotted
from stoker.hot.pseudo import names_of
from stoker.hot.words import clip, quoted
from stoker.model.errors import InvalidTemplateReference, StokerError, UserParameterMissing


@dataclass(frozen=True, slots=True)
class Names:
    """What calls may name."""

    version: str
    resources: Collection[str]
    parameters: Collection[str]
    #: None: not known, so not checked.
    files: Mapping[str, str] | None


def check_calls(value: Any, path: Path, names: Names) -> None:
    if not value:
        return
    known = known_in(names.version)
    for call in calls(value, path):
        if call.name == "if":
            check_if(call.argument, names.version, call.path)
            continue
        if call.name not in known:
            continue  # a word of other versions, and data in this one
        function = _function(call, names.version)
        for resource in function.references(call.argument):
            if resource not in names.resources:
                raise _no_resource(resource, call.path, (*call.path, call.name))
        for parameter in function.parameters(call.argument):
            if parameter not in names.parameters and parameter not in names_of(names.version):
                sentence = f"The Parameter ({clip(parameter)}) was not provided."
                raise Flaw(sentence, (*call.path, call.name), UserParameterMissing)
        if names.files is not None:
            _check_files(function.files(call.argument), call, names.files)


def check_depends_on(required: tuple[str, ...], path: Path, names: Names) -> None:
    for name in required:
        if name not in names.resources:
            place = (*path, "depends_on")
            raise _no_resource(name, place, place)


def _function(call: Call, version: str) -> Function:
    """The function called, its argument looked at."""
    place = (*call.path, call.name)
    try:
        function = lookup(call.name, version)
        function.check(call.argument, version)
    except StokerError as error:
        raise Flaw(f"{dotted(call.path)}: {error.message}", place, type(error)) from None
    return function


def _no_resource(name: str, shown: Path, place: Path) -> Flaw:
    sentence = f"The specified reference {quoted(name)} (in {dotted(shown)}) is incorrect."
    return Flaw(sentence, place, InvalidTemplateReference)


def _check_files(wanted: Iterable[str], call: Call, files: Mapping[str, str]) -> None:
    for name in wanted:
        if name not in files:
            raise flaw(call.path, f'No content found in the "files" section for get_file path: {clip(name)}')
        if not isinstance(files[name], str):
            raise flaw(call.path, f"the file {clip(name)} is not text")
