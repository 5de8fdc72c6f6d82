"""
Edits of a YAML text that leave all other characters as they are: comments, order, quotes and indentation.

A round-trip dumper is no substitute. It attaches a comment to the preceding value, so that a comment disappears with
the resource before it, and stays when its own resource is removed. New parts are written in the style of templates:
calls of functions on one line, long texts as blocks.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from stoker_client.errors import BadInput
from stoker_client.templates.documents import parse

Path = tuple[Hashable, ...]


@dataclass
class _Changes:
    """The changes of one mapping or list: the removed children, and the new entries with their predecessors."""

    removed: set[Hashable] = field(default_factory=set)
    #: New entries; an entry without a predecessor becomes the first one.
    added: list[tuple[Hashable, Any, Hashable | None]] = field(default_factory=list)


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    text: str

    def order(self) -> tuple[int, bool, int]:
        """Return the sort key: insertions come before replacements, and longer replacements before shorter ones."""
        return self.start, self.end > self.start, -self.end


def mapping_at(value: Any, name: str) -> dict[Any, Any]:
    """Return the mapping ``name`` of a mapping; an empty one if there is none."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


class SourceText:
    """A YAML document with pending edits. A path is a tuple of keys and indices from the root."""

    def __init__(self, text: str, name: str) -> None:
        """Parse ``text``; ``name`` refers to it in errors. Raises BadInput."""
        self.data: Any = parse(text, name)
        if not isinstance(self.data, dict):
            raise BadInput(f"{name}: a template or environment is a mapping of sections")
        #: Whether the text was written again without comments, because aliases repeat parts of it.
        self.is_rewritten = any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
        self._text = write_block(self.data) if self.is_rewritten else text
        self._root: Any = yaml.compose(self._text, yaml.SafeLoader)
        self._replaced: dict[Path, Any] = {}
        self._renamed: dict[Path, str] = {}
        self._changes: dict[Path, _Changes] = {}

    def section(self, name: str) -> dict[Any, Any]:
        """Return a section of the document; an empty mapping if it has none, or if the section is no mapping."""
        return mapping_at(self.data, name)

    def replace(self, path: Path, value: Any) -> None:
        """Replace the value at ``path``."""
        self._replaced[path] = value

    def rename_key(self, path: Path, name: str) -> None:
        """Rename the key of the entry at ``path``. Other edits keep its old name in their paths."""
        self._renamed[path] = name

    def remove(self, path: Path) -> None:
        """Remove the entry at ``path`` with its comments. A mapping or list that loses all entries becomes empty."""
        self._changes.setdefault(path[:-1], _Changes()).removed.add(path[-1])

    def add(self, parent: Path, key: Hashable, value: Any, after: Hashable | None = None) -> None:
        """Add an entry to the mapping at ``parent``: after the entry ``after``, or as the first one."""
        self._changes.setdefault(parent, _Changes()).added.append((key, value, after))

    def remaining(self, path: Path) -> Any:
        """Return the original value at ``path`` without the removed entries; null in their place in lists."""
        value = self.data
        for key in path:
            value = value[key]
        return self._remaining(value, path)

    def _remaining(self, value: Any, path: Path) -> Any:
        removed = self._changes[path].removed if path in self._changes else ()
        if isinstance(value, dict):
            return {key: self._remaining(inner, (*path, key)) for key, inner in value.items() if key not in removed}
        if isinstance(value, list):
            return [
                None if index in removed else self._remaining(inner, (*path, index))
                for index, inner in enumerate(value)
            ]
        return value

    def render(self) -> str:
        """Return the text with all edits. Edits inside replaced or removed parts have no effect."""
        edits = [self._replacement(path, value) for path, value in self._replaced.items()]
        edits += [self._renaming(path, name) for path, name in self._renamed.items()]
        # Of insertions at one position, the innermost comes first.
        for path, changes in sorted(self._changes.items(), key=lambda change: -len(change[0])):
            edits += _Children(self._text, self._node(path)).edits(changes)
        text, position = [], 0
        for edit in sorted(edits, key=_Edit.order):
            if edit.start < position:
                continue
            text += [self._text[position : edit.start], edit.text]
            position = edit.end
        return "".join(text) + self._text[position:]

    def _replacement(self, path: Path, value: Any) -> _Edit:
        node = self._node(path)
        return _Edit(node.start_mark.index, _end(self._text, node), write_flow(value))

    def _renaming(self, path: Path, name: str) -> _Edit:
        key = next(key for key, _ in self._node(path[:-1]).value if key.value == str(path[-1]))
        return _Edit(key.start_mark.index, key.end_mark.index, write_flow(name))

    def _node(self, path: Path) -> Any:
        node = self._root
        for key in path:
            if isinstance(node, yaml.MappingNode):
                node = next(value for name, value in reversed(node.value) if name.value == str(key))
            else:
                node = node.value[key]
        return node


class _Children:
    """The children of a mapping or list in the text."""

    def __init__(self, text: str, parent: Any) -> None:
        self._text = text
        self._parent = parent
        pairs = parent.value if isinstance(parent, yaml.CollectionNode) else []
        if isinstance(parent, yaml.MappingNode):
            self._keys: list[Hashable] = [key.value for key, _ in pairs]
            self._starts = [key.start_mark for key, _ in pairs]
            self._ends = [max(_end(text, value), key.end_mark.index) for key, value in pairs]
        else:
            self._keys = list(range(len(pairs)))
            self._starts = [node.start_mark for node in pairs]
            self._ends = [_end(text, node) for node in pairs]

    def edits(self, changes: _Changes) -> list[_Edit]:
        removed = [str(key) in {str(name) for name in changes.removed} for key in self._keys]
        if not self._keys or (all(removed) and (not changes.added or self._parent.flow_style)):
            return [self._substitute(changes)]
        if self._parent.flow_style:
            return [*self._flow_removals(removed), *self._flow_additions(changes)]
        removals = self._block_removals(removed)
        return [*removals, *self._block_additions(changes, removals)]

    def _substitute(self, changes: _Changes) -> _Edit:
        """Replace an empty collection, or one that loses all its entries."""
        empty = "[]" if isinstance(self._parent, yaml.SequenceNode) else "{}"
        text = write_flow({key: value for key, value, _ in changes.added}) if changes.added else empty
        start, end = self._parent.start_mark.index, _end(self._text, self._parent)
        # A list may be at the column of its key, where no flow value may be.
        return _Edit(start, end, text if self._parent.flow_style else f" {text}")

    def _flow_removals(self, removed: Sequence[bool]) -> list[_Edit]:
        edits = []
        for first, last in _runs(removed):
            if last + 1 < len(removed):
                edits.append(_Edit(self._starts[first].index, self._starts[last + 1].index, ""))
            else:
                edits.append(_Edit(self._ends[first - 1], self._ends[last], ""))
        return edits

    def _flow_additions(self, changes: _Changes) -> list[_Edit]:
        start = self._starts[0].index
        return [_Edit(start, start, f"{write_flow({key: value})[1:-1]}, ") for key, value, _ in changes.added]

    def _block_removals(self, removed: Sequence[bool]) -> list[_Edit]:
        edits = []
        for first, last in _runs(removed):
            start = self._lead(first)
            if last + 1 < len(removed):
                end = self._lead(last + 1) if self._is_line_start(start) else self._position(last + 1)
            else:
                end = self._line_end(last)
                start = self._without_blank_lines(start) if first else start
            edits.append(_Edit(start, end, ""))
        return edits

    def _block_additions(self, changes: _Changes, removals: Sequence[_Edit]) -> list[_Edit]:
        edits: dict[int, str] = {}
        for key, value, after in changes.added:
            position = self._lead(0) if after is None else self._line_end(self._keys.index(str(after)))
            # The predecessor may be removed with its successors.
            position = next((edit.start for edit in removals if edit.start < position < edit.end), position)
            indent = " " * self._column(0)
            block = "".join(f"{indent}{line}\n" if line else "\n" for line in write_block({key: value}).splitlines())
            if after is not None and self._is_after_blank_line(self._keys.index(str(after))):
                block = "\n" + block
            if not self._is_line_start(position):
                block = "\n" + block if after is not None else block.removeprefix(indent) + indent
            edits[position] = edits.get(position, "") + block
        return [_Edit(position, position, text) for position, text in edits.items()]

    def _is_after_blank_line(self, child: int) -> bool:
        lead = self._lead(child)
        return self._is_line_start(lead) and self._text[:lead].endswith("\n\n")

    def _is_line_start(self, position: int) -> bool:
        return position == 0 or self._text[position - 1] == "\n"

    def _column(self, child: int) -> int:
        """Return the column of the child's key or dash."""
        mark = self._starts[child]
        if isinstance(self._parent, yaml.MappingNode):
            return int(mark.column)
        line = self._text[mark.index - mark.column : mark.index]
        return line.rindex("-")

    def _position(self, child: int) -> int:
        """Return the position of the child's key or dash."""
        return int(self._starts[child].index - self._starts[child].column + self._column(child))

    def _lead(self, child: int) -> int:
        """Return the start of the child's first line, or of the comment lines directly above it."""
        column, mark = self._column(child), self._starts[child]
        start = mark.index - mark.column
        if self._text[start : start + column].strip():
            return self._position(child)  # the first child after a dash
        while start:
            above = self._text.rfind("\n", 0, start - 1) + 1
            line = self._text[above : start - 1]
            if not line.startswith(" " * column + "#"):
                break
            start = above
        return int(start)

    def _line_end(self, child: int) -> int:
        """Return the position after the child's last line."""
        newline = self._text.find("\n", self._ends[child])
        return newline + 1 if newline >= 0 else len(self._text)

    def _without_blank_lines(self, start: int) -> int:
        while start and not (line := self._text[: start - 1].rpartition("\n")[2]).strip():
            start -= len(line) + 1
        return start


def _runs(flags: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the first and last indices of all runs of true values."""
    runs: list[tuple[int, int]] = []
    for index, flag in enumerate(flags):
        if flag and runs and runs[-1][1] == index - 1:
            runs[-1] = (runs[-1][0], index)
        elif flag:
            runs.append((index, index))
    return runs


def _end(text: str, node: yaml.Node) -> int:
    """Return the end of a node without the blank and comment lines that PyYAML counts to block nodes."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        if isinstance(last, tuple):
            return max(_end(text, last[1]), int(last[0].end_mark.index))
        return _end(text, last)
    start, end = int(node.start_mark.index), int(node.end_mark.index)
    return start + len(text[start:end].rstrip())


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
