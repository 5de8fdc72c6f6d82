"""Dependency order. No function recurses, because chains may be as long as a template."""

from __future__ import annotations

from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter

from stoker.model.errors import CircularDependencyException


def sort(requirements: Mapping[str, Set[str]]) -> tuple[str, ...]:
    """Sort names so that each follows all it requires, else as given. Raises CircularDependencyException."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    # Add the names first, so that the result does not depend on the order of sets, which varies between processes.
    for name in requirements:
        sorter.add(name)
    for name, required in requirements.items():
        sorter.add(name, *required)
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        cycle = _from_first(error.args[1], requirements)
    raise CircularDependencyException(f"Circular Dependency Found: [{', '.join(cycle)}]")


def _from_first(cycle: list[str], requirements: Mapping[str, Set[str]]) -> list[str]:
    """The cycle as "a requires b requires a", beginning with the name that the template defines first."""
    # The sorter lists the cycle in reverse order, with the first name repeated at the end.
    names = cycle[:0:-1]
    places = {name: place for place, name in enumerate(requirements)}
    start = min(range(len(names)), key=lambda index: places[names[index]])
    turned = names[start:] + names[:start]
    return [*turned, turned[0]]
