"""Regular expressions of users: RE2 behind Python's and Heat's rules."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.hot.regex import MAX_PATTERN, BadPattern, compile_glob, compile_pattern


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=x)", r'"\(\?=x\)" has a look-ahead .*split the condition'),
        ("a(?!x)", "a negative look-ahead"),
        ("(?!x)y|z", "a negative look-ahead"),
        ("^(?!x)*y", "a negative look-ahead"),
        ("^(?!x", "a negative look-ahead"),
        ("(?<=x)y", "a look-behind"),
        ("(?<!x)y", "a look-behind"),
        ("(?>x)", "an atomic group .*never backtracks"),
        (r"(x)\1", "a back-reference .*write the repeated part out"),
        ("(?P<a>x)(?P=a)", "a named back-reference"),
        ("a*+", "a possessive quantifier"),
        ("a{1,2}+", "a possessive quantifier"),
        ("(x)?(?(1)a|b)", "a conditional group .*alternatives"),
        ("(?#c)a", "a comment"),
        ("(?x) a", "an unknown flag"),
        (r"\C", "a match of single bytes"),
        (r"\N{DIGIT ONE}", "a character by its name"),
        ("(", "is no regular expression"),
        ("a{1001}", "at most 1000"),
        ("a{99999999999}", "at most 1000"),
        (r"\pL{1000}", "too large: repeat less"),
        ("x" * (MAX_PATTERN + 1), f"more than {MAX_PATTERN} characters"),
        ("\ud800", "half a surrogate pair"),
    ],
)
def test_an_unsupported_pattern_is_refused_with_a_remedy(pattern: str, words: str) -> None:
    with pytest.raises(BadPattern, match=words):
        compile_pattern(pattern)


#: Pieces that mean the same to Python and to RE2, besides their own ways to write them.
PIECES = r"a b é . a| [ab] [^a] []a] (a) (?:b|a) a* b+ a? a{2} a{,2} a{1,} ^ \Z \u00e9 \. { [{3}] [\u00e9.]"
pieces = st.lists(st.sampled_from(PIECES.split()), max_size=5).map("".join)


@given(pattern=pieces, text=st.text("abé.\\{]3", max_size=6))
def test_a_pattern_matches_as_in_heat(pattern: str, text: str) -> None:
    theirs, ours = re.compile(pattern), compile_pattern(pattern)
    beginning, match = theirs.match(text), ours.match(text)
    assert ours.matches_whole(text) == (beginning is not None and beginning.end() == len(text))
    assert (match and match.span()) == (beginning and beginning.span())


EXCLUSIONS = ["(?!a)", "(?!a$)", "(?!(?:a|b)b)", "(?!(a)b)", "(?![)(|]a)", r"(?!\(\|)", "(?!)"]
bodies = st.lists(
    st.sampled_from(["a", "b", ".", "[ab]", "(a)", "(?:b|a)", "(a|b)", "a*", "b+", "a?", "$"]), max_size=4
).map("".join)


@given(
    anchor=st.sampled_from(["", "^"]),
    exclusions=st.lists(st.sampled_from(EXCLUSIONS), min_size=1, max_size=2).map("".join),
    body=bodies,
    text=st.text("ab)(|", max_size=5),
)
def test_negative_look_aheads_at_the_beginning_match_as_in_python(anchor, exclusions, body, text) -> None:
    theirs, ours = re.compile(anchor + exclusions + body), compile_pattern(anchor + exclusions + body)
    beginning = theirs.match(text)
    assert ours.matches_whole(text) == (beginning is not None and beginning.end() == len(text))
    match = ours.match(text)
    assert (match and match.span()) == (beginning and beginning.span())


def test_a_pattern_too_large_for_a_text_is_refused() -> None:
    pattern = compile_pattern("(?:[ab]*a[ab]{900}c)")
    assert not pattern.matches_whole("ab" * 1000)
    with pytest.raises(BadPattern, match="too large for a text of 100000 characters"):
        pattern.matches_whole("ab" * 50_000)


GLOBS = r"* ** ? a b é . \ [ab] [!ab] [a-c] [^a] []a] [!]a] [ ( +"


@given(
    glob=st.lists(st.sampled_from(GLOBS.split()), max_size=5).map("".join), text=st.text("abcé.\\[](+^\n", max_size=5)
)
def test_a_glob_matches_as_in_the_shell(glob: str, text: str) -> None:
    assert compile_glob(glob).matches_whole(text) == fnmatchcase(text, glob)
