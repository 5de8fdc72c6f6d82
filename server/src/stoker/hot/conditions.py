"""
Conditions: they decide which parts of a template apply, before any other evaluation.

Conditions depend on parameters only. ``if`` works like a macro: the branch that is not chosen has no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from stoker.hot import functions
from stoker.hot.calls import check_if, evaluate, is_literal
from stoker.hot.definition import SETTINGS, Definition, with_setting
from stoker.hot.flaw import Flaw, Path, dotted_path, flaw
from stoker.hot.scope import UNKNOWN, Scope, weigh
from stoker.hot.words import did_you_mean, kind_of, quote_word
from stoker.model.errors import InvalidTemplateVersion, StackValidationFailed, StokerError

IF = "if"
#: The parts of a resource's definition in which an ``if`` may occur.
CONDITIONAL = ("properties", "metadata", "update_policy", *SETTINGS)

#: The result of an ``if`` without the chosen branch: the enclosing key or list item is removed.
_OMITTED: Final = object()


def _condition_since(name: str) -> str | None:
    """Return the version from which the function is a condition; None if conditions cannot call the function."""
    function = functions.all_functions().get(name)
    return function.condition_since if function is not None else None


class Conditions:
    """Evaluates the conditions of a template. ``raw``: the unevaluated section. Methods raise flaws."""

    def __init__(self, raw: Mapping[str, Any], scope: Scope) -> None:
        self._raw = raw
        self._scope = scope
        self._known: dict[str, Any] = {}
        self._asked: list[str] = []

    @property
    def version(self) -> str:
        """The version of the template."""
        return self._scope.version

    def check_all(self) -> None:
        """
        Raise the first error of a condition, also of one that nothing uses.

        The scope's parameters should be UNKNOWN: as in Heat, the value of a condition is computed when it is used.
        """
        for name in self._raw:
            try:
                self.evaluate(name, ("conditions", name))
            except RecursionError:
                raise flaw(("conditions", name), "too many conditions build on each other") from None

    def evaluate(self, name: str, path: Path) -> Any:
        """The value of a condition: true, false or UNKNOWN."""
        if name not in self._raw:
            sentence = f"Invalid condition {quote_word(name)}{did_you_mean(name, self._raw)}"
            raise Flaw(sentence, path, place=dotted_path(path))
        if name in self._asked:
            circle = " → ".join([*self._asked[self._asked.index(name) :], name])
            raise flaw(("conditions", name), f"Circular definition for condition: {circle}")
        if name not in self._known:
            self._asked.append(name)
            raw = self._raw[name]
            if isinstance(raw, str):
                raise flaw(("conditions", name), f"a boolean or a condition function is needed, not {quote_word(raw)}")
            self._known[name] = self.holds(raw, ("conditions", name))
            self._asked.pop()
        return self._known[name]

    def holds(self, condition: Any, path: Path) -> Any:
        """Evaluate ``condition``, which is a condition's name, a boolean or a condition function."""
        if isinstance(condition, bool):
            return condition
        if isinstance(condition, str):
            return self.evaluate(condition, path)
        if isinstance(condition, Mapping) and len(condition) == 1:
            [(name, argument)] = condition.items()
            return self._function(name, argument, path)
        raise flaw(path, f"a condition is a name, a boolean or a condition function, not {kind_of(condition)}")

    def _function(self, name: str, argument: Any, path: Path) -> Any:
        place = (*path, name)
        own = _OWN.get(name)
        if own is not None:
            return own(self, argument, place)
        since = _condition_since(name)
        if since is None:
            raise flaw(path, f"{quote_word(name)} is no condition function")
        if self._scope.version < since:
            raise Flaw(
                f"{dotted_path(path)}: {quote_word(name)} is a condition function only from {since}",
                place,
                InvalidTemplateVersion,
            )
        value = self._value({name: argument}, path)
        if value is UNKNOWN or isinstance(value, bool):
            return value
        raise flaw(place, f"the value must be true or false, not {kind_of(value)}")

    def _value(self, expression: Any, path: Path) -> Any:
        """Evaluate an operand of a condition: a literal, a parameter or another condition."""
        if isinstance(expression, Mapping) and len(expression) == 1:
            [(name, argument)] = expression.items()
            if name in _OWN:
                return _OWN[name](self, argument, (*path, name))
            if name in functions.call_names() and _condition_since(name) is None:
                raise flaw(path, f"{quote_word(name)} cannot be used in a condition: conditions see parameters only")
        try:
            return evaluate(choose_branches(expression, self, path), self._scope)
        except StokerError as error:
            raise Flaw(f"{dotted_path(path)}: {error.message}", path, type(error)) from None

    def equals(self, argument: Any, path: Path) -> Any:
        if not isinstance(argument, list) or len(argument) != 2:
            raise flaw(path, '"equals" needs a list of two values')
        first, second = (self._value(operand, (*path, i)) for i, operand in enumerate(argument))
        return UNKNOWN if weigh([first, second])[1] else first == second

    def negation(self, argument: Any, path: Path) -> Any:
        is_true = self.holds(argument, path)
        return UNKNOWN if is_true is UNKNOWN else not is_true

    def junction(self, argument: Any, path: Path, *, deciding: bool) -> Any:
        if not isinstance(argument, list) or len(argument) < 2:
            raise flaw(path, "at least two conditions are needed, in a list")
        truths = [self.holds(operand, (*path, i)) for i, operand in enumerate(argument)]
        if deciding in truths:
            return deciding
        return UNKNOWN if UNKNOWN in truths else not deciding


_OWN: Mapping[str, Callable[[Conditions, Any, Path], Any]] = {
    "equals": Conditions.equals,
    "not": Conditions.negation,
    "and": partial(Conditions.junction, deciding=False),
    "or": partial(Conditions.junction, deciding=True),
}


def has_if(value: Any) -> bool:
    """Whether ``value`` contains an ``if``."""
    if type(value) is dict:
        return (len(value) == 1 and IF in value) or (not is_literal(value) and any(map(has_if, value.values())))
    return type(value) is list and any(map(has_if, value))


def choose_branches(value: Any, conditions: Conditions, path: Path) -> Any:
    """Replace each ``if`` in ``value`` with its branch, or with UNKNOWN if its condition is UNKNOWN."""
    chosen = _choose_branches(value, conditions, path)
    return None if chosen is _OMITTED else chosen


def _choose_branches(value: Any, conditions: Conditions, path: Path) -> Any:
    if type(value) is dict:
        if len(value) == 1 and IF in value:
            return _branch(value[IF], conditions, (*path, IF))
        if is_literal(value):
            return value
        return dict(_choose_within(value.items(), conditions, path))
    if type(value) is list:
        return [item for _, item in _choose_within(enumerate(value), conditions, path)]
    return value


def _choose_within(entries: Iterable[tuple[Any, Any]], conditions: Conditions, path: Path) -> list[tuple[Any, Any]]:
    """Choose the branches in the entries of a map or list, and leave out those without a chosen branch."""
    kept = []
    for key, part in entries:
        chosen = _choose_branches(part, conditions, (*path, key))
        if chosen is not _OMITTED:
            kept.append((key, chosen))
    return kept


def _branch(argument: Any, conditions: Conditions, path: Path) -> Any:
    # Those in conditions, and in the branches of others, have not been checked yet.
    check_if(argument, conditions.version, path[:-1])
    is_true = conditions.holds(argument[0], (*path, 0))
    if is_true is UNKNOWN:
        return UNKNOWN
    if is_true:
        return _choose_branches(argument[1], conditions, (*path, 1))
    return _choose_branches(argument[2], conditions, (*path, 2)) if len(argument) == 3 else _OMITTED


def apply_conditions(definition: Definition, conditions: Conditions) -> Definition:
    """Resolve each ``if`` in a definition. The caller has checked the definition's own condition."""
    path: Path = ("resources", definition.name)
    parts = {
        name: choose_branches(getattr(definition, name), conditions, (*path, name))
        for name in CONDITIONAL
        if has_if(getattr(definition, name))
    }
    settings = {name: parts.pop(name) for name in SETTINGS if name in parts}
    maps = {name: _as_map(part, (*path, name)) for name, part in parts.items()}
    definition = replace(definition, condition=None, **maps)
    for name, value in settings.items():
        definition = with_setting(definition, name, None if value is UNKNOWN else value, conditions.version)
    return definition


def _as_map(part: Any, path: Path) -> Any:
    """Return a part that must be a map; UNKNOWN stays. A null or missing branch is equal to a missing key."""
    if part is None:
        return {}
    if part is not UNKNOWN and not isinstance(part, dict):
        raise StackValidationFailed(f"{dotted_path(path)} must be a map, not {kind_of(part)}")
    return part
