"""Reading YAML and JSON text as Heat reads it, and saying where it is broken."""

import json
from typing import Any

import yaml

from stoker_client.errors import BadInput

DEPTH = 150
NODES = 1_000_000

VERSIONS = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")

_SafeLoader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_SafeLoader):  # type: ignore[misc]  # which of the two it is, is known only here and now
    """YAML in which a date stays text: ``2021-04-16`` is a template version, not a day."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_scalar)


def parse(text: str, name: str) -> Any:
    """The document in ``text``; ``name`` is what the user calls it."""
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
    """Nesting is counted first: libyaml's loader recurses in C, where too much of it ends the whole process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise RecursionError
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a safe loader, made above)


def _measure(node: Any, sizes: dict[int, int | None]) -> int:
    """How many nodes a structure has with its aliases written out, which is how it would travel as JSON."""
    if not isinstance(node, dict | list):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = None  # being counted: to come back here is to go round for ever
        children = node.values() if isinstance(node, dict) else node
        sizes[id(node)] = 1 + sum(_measure(child, sizes) for child in children)
    size = sizes[id(node)]
    if size is None:
        raise ValueError("an alias leads back to what holds it")
    if size > NODES:
        raise ValueError(f"its aliases repeat it to more than {NODES} nodes")
    return size


def is_template(data: Any) -> bool:
    """Whether a parsed document says that it is a template."""
    return isinstance(data, dict) and any(key in data for key in VERSIONS)
