"""
The function calls in values: which there are, and so the dependencies of a part of a template; whether they are valid;
and their evaluation.

Literals are data in templates that Stoker generates, such as those of groups. Their values were evaluated in the
template of the group, so they must stay data even if they look like calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from msgspec import Struct

from stoker.hot.flaw import Flaw, Flaws, Path, dotted_path, flaw
from stoker.hot.functions import Function, all_functions, call_names, evaluators, known_in, lookup
from stoker.hot.scope import MAX_WEIGHT, UNKNOWN, Scope, weigh
from stoker.hot.syntaxes import has_conditions, pseudo_parameters
from stoker.hot.words import clip, did_you_mean, quote_word, suggest
from stoker.model.errors import (
    InvalidTemplateReference,
    InvalidTemplateVersion,
    StackValidationFailed,
    StokerError,
    UserParameterMissing,
)

#: The single key of a map whose value is data: no code evaluates it.
LITERAL = "Stoker::Data"


@cache
def _names() -> frozenset[str]:
    """The names whose single-key maps ``calls`` yields."""
    return call_names() | {"if"}


def literal(value: Any) -> Any:
    """Wrap ``value`` as a literal if any part of it looks like a call."""
    misleading = _names() | {LITERAL}
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if len(part) == 1 and not misleading.isdisjoint(part):
                return {LITERAL: value}
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return value


def is_literal(value: dict[str, Any]) -> bool:
    """Whether the map is a literal."""
    return len(value) == 1 and LITERAL in value


class Call(NamedTuple):
    """One function call in a template."""

    name: str
    argument: Any
    #: The path of the map that contains the call.
    path: Path


_CONTAINERS = (dict, list)


def calls(root: Any, path: Path = ()) -> Iterator[Call]:
    """
    All calls in ``root``, outer before inner, in the order of the text.

    Skips the contents of ``if``, because its branch is chosen later, and the contents of literals.
    """
    names = _names()
    pending: list[tuple[Any, Path]] = [(root, path)] if type(root) in _CONTAINERS else []
    while pending:
        value, path = pending.pop()
        if type(value) is dict and len(value) == 1:
            [(name, argument)] = value.items()
            if name in names:
                yield Call(name, argument, path)
            if name in ("if", LITERAL):
                continue
        entries = value.items() if type(value) is dict else enumerate(value)
        inner = [(part, (*path, key)) for key, part in entries if type(part) in _CONTAINERS]
        inner.reverse()
        pending += inner


def references(value: Any) -> frozenset[str]:
    """The names of all resources that ``value`` refers to with ``get_resource`` or ``get_attr``."""
    functions = all_functions()
    return frozenset(
        name
        for call in calls(value)
        if call.name in functions
        for name in functions[call.name].references(call.argument)
    )


def inline(value: Any, files: Mapping[str, str]) -> Any:
    """Replace each ``get_file`` of a file in ``files`` with the file's text."""
    if type(value) is dict:
        if len(value) == 1:
            name = value.get("get_file")
            if isinstance(name, str) and name in files:
                return files[name]
            if is_literal(value):
                return value
        return {key: inline(part, files) for key, part in value.items()}
    return [inline(part, files) for part in value] if type(value) is list else value


#: The types of values without parts. Most values are such.
_SCALARS = frozenset((str, int, float, bool, type(None)))


def evaluate(value: Any, scope: Scope) -> Any:
    """
    Replace each function call in ``value`` with its result, innermost first; a call with an UNKNOWN argument is
    UNKNOWN, and results are data. Arguments and result may weigh ``MAX_WEIGHT``; the scope's budget raises
    RequestLimitExceeded.
    """
    run = _Evaluation(scope)
    weight = 0
    try:
        result = run.value(value)
        weight = weigh(result)[0]
    finally:
        # A failed evaluation costs as much as a successful one.
        scope.budget.spend(weight=weight + MAX_WEIGHT - run.left, steps=run.calls)
    return result


def is_call(value: Any, version: str) -> bool:
    """Whether the whole value is a function call or a literal."""
    if type(value) is not dict or len(value) != 1:
        return False
    [name] = value
    return name in evaluators(version) or name == LITERAL


class _Evaluation:
    """One evaluation. The reader limits the depth of the recursion. Keep the code fast: it runs for every value."""

    __slots__ = ("_scope", "_table", "calls", "left")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._table = evaluators(scope.version)
        #: Remaining weight for the arguments of functions.
        self.left = MAX_WEIGHT
        self.calls = 0

    def value(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            if len(value) == 1:
                [(name, argument)] = value.items()
                function = self._table.get(name)
                if function is not None:
                    return self._call(function, self.value(argument))
                if name == LITERAL:
                    return argument
            return {name: part if type(part) in _SCALARS else self.value(part) for name, part in value.items()}
        if kind is list:
            return [part if type(part) in _SCALARS else self.value(part) for part in value]
        return value

    def _call(self, function: Function, argument: Any) -> Any:
        self.calls += 1
        if type(argument) is not str:
            weight, unknown = weigh(argument, self.left)
            self.left -= weight
            if unknown:
                return UNKNOWN
        function.check(argument, self._scope.version, is_value=True)
        return function.evaluate(argument, self._scope)


#: From this version on, the third argument of ``if`` is optional.
OMITTING_SINCE = "2021-04-16"


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


def check_if(argument: Any, version: str, path: Path) -> None:
    """Raises a flaw if an ``if`` is invalid, whatever its condition."""
    if not has_conditions(version):
        sentence = f"{dotted_path(path)}: 'if' is not supported in template version {version}: it has no conditions"
        raise Flaw(sentence, path, InvalidTemplateVersion)
    allowed = (2, 3) if version >= OMITTING_SINCE else (3,)
    if not isinstance(argument, list) or len(argument) not in allowed:
        shape = "a condition, a value and perhaps another" if 2 in allowed else "a condition and two values"
        raise flaw(path, f'"if" needs a list: {shape}')


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
