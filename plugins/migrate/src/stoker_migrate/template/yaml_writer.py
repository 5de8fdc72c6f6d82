"""Writes YAML in the style of templates: calls of functions on one line, long texts as blocks."""

from __future__ import annotations

from typing import Any

import yaml

#: Functions whose calls stand on one line.
_FUNCTIONS = ("get_param", "get_attr", "get_resource", "get_file", "list_join")


class _FlowDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Dumper(_FlowDumper):
    pass


def _mapping(dumper: yaml.SafeDumper, data: dict[Any, Any]) -> yaml.Node:
    node = dumper.represent_mapping("tag:yaml.org,2002:map", data.items())
    if len(data) == 1 and next(iter(data)) in _FUNCTIONS:
        node.flow_style = True
        for _, value in node.value:
            if isinstance(value, yaml.CollectionNode):
                value.flow_style = True
    return node


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    # YAML cannot express these texts as blocks.
    is_block = "\n" in data and not data.startswith((" ", "\n")) and " \n" not in data
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style="|" if is_block else None)


def _list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    is_short = all(isinstance(item, str | int) and "\n" not in str(item) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=is_short)


_Dumper.add_representer(dict, _mapping)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(str, _text)


def write_block(value: Any) -> str:
    """Return ``value`` as YAML in block style."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100_000)


def write_flow(value: Any) -> str:
    """Return ``value`` as YAML on one line."""
    text = yaml.dump(
        value, Dumper=_FlowDumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf")
    )
    return text.strip().removesuffix("...").rstrip()
