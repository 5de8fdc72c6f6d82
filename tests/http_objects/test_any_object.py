"""What was written is read, and lists follow their definition, whatever the names."""

from __future__ import annotations

import string
from urllib.parse import quote, urlencode

from hypothesis import given, settings
from hypothesis import strategies as st

from support.search import examples

bounded = settings(max_examples=examples(40))

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).map(str.strip)
tokens = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=20)


#: Names that a path, a query or a line could change.
NAMES = ["a b", "a/b//c/", "/", "//", "/lead", "?q=1&x", "%2F", "a%", "#", "..", "a/../b", "+", ";", "\x01", "x" * 1024]


@bounded
@given(
    name=st.sampled_from(NAMES) | texts,
    data=st.binary(max_size=300),
    metadata=st.dictionaries(tokens, values, max_size=4),
    kind=values,
)
def test_any_object_is_returned_as_written(swift, fuzzed, name, data, metadata, kind):
    # Of names that differ in case alone the wire knows one.
    metadata = {key.lower(): value for key, value in metadata.items()}
    url = f"{swift.root}{fuzzed}/{quote(name, safe='')}"
    headers = {f"X-Object-Meta-{key}": value for key, value in metadata.items()}
    if kind:
        headers["Content-Type"] = kind
    put = swift.raw("PUT", url, data, headers)
    assert put.status == 201, put.raw
    assert swift.raw("GET", f"{swift.root}{fuzzed}/{quote(name)}").raw == data
    got = swift.raw("GET", url)
    assert (got.status, got.raw, got.headers["ETag"]) == (200, data, put.headers["ETag"])
    for key, value in metadata.items():
        sent = got.headers.get(f"X-Object-Meta-{key}", "").encode("latin-1").decode()
        assert sent == value.strip(" \t")
    if kind:
        assert got.headers["Content-Type"].encode("latin-1").decode() == kind
    listed = swift("GET", f"{fuzzed}?" + urlencode({"format": "json", "prefix": name})).body
    assert [each["name"] for each in listed if each["name"] == name] == [name]
    assert swift.raw("DELETE", url).status == 204


@bounded
@given(st.sets(st.text("ab/\U0010ffffé", min_size=1, max_size=5), min_size=1, max_size=8), st.data())
def test_any_listing_follows_its_definition(swift, made, data):
    """Against the plainest of models."""
    path = swift.container()
    for name in made:
        assert swift("PUT", f"{path}/{quote(name, safe='')}", b"").status == 201
    word = st.text("ab/é", max_size=3)
    prefix, delimiter, marker = (data.draw(word) for _ in range(3))
    limit = data.draw(st.integers(1, 5))
    expected = model(made, prefix, delimiter, marker)[:limit]
    query = {"format": "json", "prefix": prefix, "delimiter": delimiter, "marker": marker, "limit": limit}
    found = swift("GET", f"{path}?{urlencode(query)}").body
    assert [each.get("name", each.get("subdir")) for each in found] == expected
    # Page after page is the whole.
    whole, marker = [], ""
    while page := swift("GET", f"{path}?" + urlencode({**query, "marker": marker})).body:
        whole += [each.get("name", each.get("subdir")) for each in page]
        marker = whole[-1]
        assert len(whole) <= len(made)
    assert whole == model(made, prefix, delimiter, "")


def model(names, prefix, delimiter, marker):
    seen = set()
    for name in names:
        if not name.startswith(prefix) or name <= marker:
            continue
        head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
        entry = prefix + head + found if found else name
        if not (found and entry == marker):
            seen.add(entry)
    return sorted(seen)
