"""Whatever is sent, nobody gets a 5xx, and what was put is got."""

from __future__ import annotations

import string
from urllib.parse import quote, urlencode

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.search import examples

bounded = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
values = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).map(str.strip)
tokens = st.text(string.ascii_letters + string.digits + "-_", min_size=1, max_size=20)
HEADERS = [
    "Content-Type",
    "ETag",
    "X-Delete-At",
    "X-Copy-From",
    "Range",
    "If-Match",
    "If-None-Match",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "If-Range",
    "Content-Disposition",
    "X-Versions-Enabled",
    "X-Container-Meta-Temp-URL-Key",
    "X-Remove-Container-Meta-A",
    "X-Object-Meta-A",
    "X-Container-Meta-A",
    "X-Account-Meta-A",
    "X-Detect-Content-Type",
    "Accept",
]
QUERIES = [
    "limit",
    "marker",
    "prefix",
    "delimiter",
    "format",
    "multipart-manifest",
    "temp_url_sig",
    "temp_url_expires",
    "temp_url_prefix",
    "temp_url_ip_range",
    "filename",
    "inline",
]
WORDS = [
    "",
    "*",
    "0",
    "-1",
    "1",
    "true",
    "null",
    "1e9",
    "²",
    "9" * 25,
    "bytes=0-",
    "bytes=-1",
    "bytes=9-1,2",
    "a/b",
    "/c/o",
    "%ff",
    "%00",
    "\U0010ffff",
    "sha256:AAAA",
    "f" * 64,
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Thu, 99 Jan 99999 00:00:00 +9999",
    "2000000000.00000",
    "json;q=x",
    "text/*;q=nan, application/json;q=0.1",
    "2100-01-01T00:00:00Z",
]
words = st.sampled_from(WORDS) | values


def sound(answer):
    assert answer.status < 500, answer.raw
    return answer


@bounded
@given(name=texts, data=st.binary(max_size=300), metadata=st.dictionaries(tokens, values, max_size=4), kind=values)
def test_any_object_is_returned_as_written(swift, fuzzed, name, data, metadata, kind):
    # Of names that differ in case alone the wire knows one.
    metadata = {key.lower(): value for key, value in metadata.items()}
    url = f"{swift.root}{fuzzed}/{quote(name, safe='')}"
    headers = {f"X-Object-Meta-{key}": value for key, value in metadata.items()}
    if kind:
        headers["Content-Type"] = kind
    put = sound(swift.raw("PUT", url, data, headers))
    assert put.status == 201, put.raw
    got = swift.raw("GET", url)
    assert (got.status, got.raw, got.headers["ETag"]) == (200, data, put.headers["ETag"])
    for key, value in metadata.items():
        sent = got.headers.get(f"X-Object-Meta-{key}", "").encode("latin-1").decode()
        assert sent == value.strip(" \t")
    if kind:
        assert got.headers["Content-Type"].encode("latin-1").decode() == kind
    listed = swift("GET", f"{fuzzed}?" + urlencode({"format": "json", "prefix": name})).body
    assert listed[0]["name"] == name
    assert swift.raw("DELETE", url).status == 204


@bounded
@given(
    verb=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE"]),
    below=st.sampled_from(["", "{c}", "{c}/o", "{c}/new", "{c}//", "/fuzz-only", "/fuzz-only/o"]) | texts.map(quote),
    query=st.dictionaries(st.sampled_from(QUERIES), words, max_size=4),
    headers=st.dictionaries(st.sampled_from(HEADERS), words, max_size=4),
    data=st.none() | st.binary(max_size=30),
)
def test_any_request_is_answered(swift, fuzzed, verb, below, query, headers, data):
    swift("PUT", f"{fuzzed}/o", b"0123456789")
    path = swift.root + (below.replace("{c}", fuzzed) if "{c}" in below else below)
    said = urlencode(query)
    answer = sound(swift.raw(verb, f"{path}?{said}" if said else path, data, headers))
    assert answer.headers["X-Trans-Id"]
    sound(swift("GET", f"{fuzzed}?format=json"))


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
