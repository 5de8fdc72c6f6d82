"""Lines of places in a text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stoker.hot.yaml_text import lines

TEXT = """\
# a comment
a:
  b: 1
  c:
    - x
    - d: &anchor
        e: 2

      f: 3
g: *anchor
"h": {i: [1,
  2]}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (["a"], 2),
        (["a", "b"], 3),
        (["a", "c", 0], 5),
        (["a", "c", 1], 6),
        (["a", "c", 1, "d", "e"], 7),
        (["a", "c", 1, "f"], 9),
        (["h", "i", 1], 12),
        (["a", "c", 1, "missing", "deeper"], 6),
        (["a", "c", 9], 4),
        (["a", "c", "word"], 4),
        (["a", "b", "below a scalar"], 3),
        (["g", "e"], 10),
    ],
)
def test_the_line_of_the_deepest_existing_part_is_found(path: Sequence[str | int], line: int) -> None:
    assert lines(TEXT, [tuple(path)]) == {tuple(path): line}


@pytest.mark.parametrize(
    ("source", "path"), [(TEXT, ["missing"]), (TEXT, []), ("", ["a"]), ("]", ["a"]), ("\ud800", ["a"])]
)
def test_text_without_lines_has_no_line(source: str, path: list[str]) -> None:
    assert lines(source, [tuple(path)]) == {}


def test_lines_are_found_in_json_and_before_an_unreadable_part() -> None:
    assert lines('{"a": {},\n "b": {"c":\n 1}}', [("b", "c")]) == {("b", "c"): 2}
    deep = "b: 1\na: " + "[" * 900 + "]" * 900 + "\nc: 1"
    assert lines(deep, [("b",), ("a", 0), ("c",)]) == {("b",): 1, ("a", 0): 2}
