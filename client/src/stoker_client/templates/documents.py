"""Parses YAML and JSON as Heat does, with error messages that state the position."""

import json
from typing import Any

import yaml

from stoker_client.errors import BadInput

DEPTH = 150
NODES = 1_000_000

VERSIONS = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]  # which of the two it is, is known only here and now
    """Loads YAML without dates: ``2021-04-16`` is a template version."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_scalar)


def parse(text: str, name: str) -> Any:
    """Return the document in ``text``. ``name`` refers to it in errors. Raises BadInput."""
    try:
        data = _json_or_yaml(text) if text.lstrip().startswith("{") else _yaml(text)
        _measure(data, {})
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        raise BadInput(f"{place}: {problem.problem or 'not YAML'}") from problem
    except (yaml.YAMLError, ValueError) as problem:
        raise BadInput(f"{name}: cannot be used: {str(problem).splitlines()[0]}") from problem
    except RecursionError as problem:
        raise BadInput(f"{name}: nested too deeply") from problem
    return data


def _json_or_yaml(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return _yaml(text)


def _yaml(text: str) -> Any:
    """Check the depth first: libyaml's loader recurses in C, and deep nesting would end the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise RecursionError
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader, defined above)


def _measure(node: Any, sizes: dict[int, int | None]) -> int:
    """Return the number of nodes with aliases expanded, as in JSON."""
    if not isinstance(node, dict | list):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = None  # being counted; a second visit means a cycle
        children = node.values() if isinstance(node, dict) else node
        sizes[id(node)] = 1 + sum(_measure(child, sizes) for child in children)
    size = sizes[id(node)]
    if size is None:
        raise ValueError("an alias leads back to what holds it")
    if size > NODES:
        raise ValueError(f"its aliases repeat it to more than {NODES} nodes")
    return size


def is_template(data: Any) -> bool:
    """Whether a parsed document is a template."""
    return isinstance(data, dict) and any(key in data for key in VERSIONS)
