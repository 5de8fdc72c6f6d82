"""Objects: what was put is got, under every condition that can be asked for."""

from __future__ import annotations

import hashlib
import time

import pytest

from stoker.objects import limits

DATA = bytes(range(256)) * 4


@pytest.fixture
def path(swift):
    return swift.container()


def test_bytes_and_headers_are_returned(swift, path):
    put = swift(
        "PUT",
        f"{path}/o",
        DATA,
        Content_Type="text/x-thing; charset=latin-1",
        Content_Encoding="gzip",
        Content_Disposition='attachment; filename="x"',
        X_Object_Meta_Name="größe 💥",
        ETag=f'"{hashlib.md5(DATA).hexdigest()}"',
    )
    assert (put.status, put.raw) == (201, b"")
    assert put.headers["ETag"] == hashlib.md5(DATA).hexdigest()
    got, head = swift("GET", f"{path}/o"), swift("HEAD", f"{path}/o")
    assert got.raw == DATA
    assert head.raw == b""
    for answer in (got, head):
        assert answer.status == 200
        assert answer.headers["Content-Length"] == str(len(DATA))
        assert answer.headers["Content-Type"] == "text/x-thing; charset=latin-1"
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Content-Disposition"] == 'attachment; filename="x"'
        assert answer.headers["X-Object-Meta-Name"].encode("latin-1").decode() == "größe 💥"
        assert answer.headers["ETag"] == put.headers["ETag"]
        assert answer.headers["Last-Modified"] == put.headers["Last-Modified"]
        assert float(answer.headers["X-Timestamp"]) == pytest.approx(time.time(), abs=60)


def test_content_types_are_guessed_from_names(swift, path):
    for name, kind in (("a.html", "text/html"), ("a.json", "application/json"), ("a", "application/octet-stream")):
        swift("PUT", f"{path}/{name}", b"x")
        assert swift("HEAD", f"{path}/{name}").headers["Content-Type"] == kind


def test_overwriting_counts_once(swift, path):
    for data in (b"12345", b"", b"123"):
        assert swift("PUT", f"{path}/o", data).status == 201
        assert swift("GET", f"{path}/o").raw == data
        headers = swift("HEAD", path).headers
        assert (headers["X-Container-Object-Count"], headers["X-Container-Bytes-Used"]) == ("1", str(len(data)))
    assert swift("DELETE", f"{path}/o").status == 204
    assert swift("DELETE", f"{path}/o").status == 404
    headers = swift("HEAD", path).headers
    assert (headers["X-Container-Object-Count"], headers["X-Container-Bytes-Used"]) == ("0", "0")


def test_post_replaces_metadata(swift, path):
    swift("PUT", f"{path}/o", b"x", X_Object_Meta_A="1", X_Object_Meta_B="2", Content_Type="a/b")
    assert swift("POST", f"{path}/o", b"", X_Object_Meta_C="3", Content_Encoding="br").status == 202
    headers = swift("HEAD", f"{path}/o").headers
    assert "X-Object-Meta-A" not in headers
    assert (headers["X-Object-Meta-C"], headers["Content-Type"], headers["Content-Encoding"]) == ("3", "a/b", "br")
    assert swift("POST", f"{path}/o", b"", Content_Type="c/d").status == 202
    headers = swift("HEAD", f"{path}/o").headers
    assert headers["Content-Type"] == "c/d"
    assert "X-Object-Meta-C" not in headers
    assert swift("POST", f"{path}/none", b"").status == 404


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("bytes=0-9", 0, 10),
        ("bytes=1000-", 1000, 1024),
        ("bytes=-4", 1020, 1024),
        ("bytes=-9999", 0, 1024),
        ("bytes=5-5", 5, 6),
        ("bytes=1000-9999", 1000, 1024),
    ],
)
def test_a_range_is_returned(swift, path, said, start, end):
    swift("PUT", f"{path}/o", DATA)
    got = swift("GET", f"{path}/o", Range=said)
    assert (got.status, got.raw) == (206, DATA[start:end])
    assert got.headers["Content-Range"] == f"bytes {start}-{end - 1}/1024"
    head = swift("HEAD", f"{path}/o", Range=said)
    assert (head.status, head.headers["Content-Length"]) == (200, "1024")


def test_several_invalid_and_unsatisfiable_ranges(swift, path):
    swift("PUT", f"{path}/o", DATA)
    for said in ("bytes=0-1,1020-", "bytes=0-,0-", "bytes=5-1", "lines=1-2", "bytes=", "bytes=-", "bytes=a-b"):
        whole = swift("GET", f"{path}/o", Range=said)
        assert (whole.status, whole.raw) == (200, DATA), said
    for said in ("bytes=1024-", "bytes=-0"):
        refused = swift("GET", f"{path}/o", Range=said)
        assert (refused.status, refused.headers["Content-Range"]) == (416, "bytes */1024")
    assert swift("GET", f"{path}/o", Range="bytes=0-1", If_Range="other").status == 200


def test_reads_may_be_conditional(swift, path):
    put = swift("PUT", f"{path}/o", b"x")
    tag, at = put.headers["ETag"], put.headers["Last-Modified"]
    early = "Thu, 01 Jan 2015 00:00:00 GMT"
    for headers, status in [
        ({"If-Match": tag}, 200),
        ({"If-Match": f'"a", "{tag}"'}, 200),
        ({"If-Match": "other"}, 412),
        ({"If-None-Match": tag}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": "other"}, 200),
        ({"If-Modified-Since": at}, 304),
        ({"If-Modified-Since": early}, 200),
        ({"If-Modified-Since": "yesterday"}, 200),
        ({"If-None-Match": "other", "If-Modified-Since": at}, 200),
    ]:
        for verb in ("GET", "HEAD"):
            answer = swift.raw(verb, f"{swift.root}{path}/o", None, headers)
            assert answer.status == status, (verb, headers)
            if status == 304:
                assert (answer.raw, answer.headers["ETag"]) == (b"", tag)


@pytest.mark.parametrize(
    ("verb", "below", "data", "headers", "status"),
    [
        ("PUT", "/o", b"new", {"ETag": "0" * 32}, 422),
        ("PUT", "/o", b"new", {"If-Unmodified-Since": "Thu, 01 Jan 2015 00:00:00 GMT"}, 400),
        ("PUT", "/o", b"new", {"If-None-Match": "*"}, 400),
        ("DELETE", "/o", None, {"If-Match": "other"}, 400),
        ("PUT", "/o", b"x" * (limits.OBJECT_SIZE + 1), {}, 413),
        ("PUT", "/" + "x" * 1025, b"new", {}, 400),
        ("PUT", "/o", b"new", {"X-Delete-At": "2000000000"}, 400),
        ("PUT", "/o", b"new", {"X-Delete-After": "60"}, 400),
        ("PUT", "/o", b"new", {"X-Object-Manifest": "c/o"}, 400),
        ("PUT", "/o", b"new", {"X-Symlink-Target": "c/o"}, 400),
        ("PUT", "/o?multipart-manifest=put", b"[]", {}, 400),
        ("PUT", "/o", b"new", {"X-Object-Meta-A": "v" * 257}, 400),
        ("PUT", "/o", b"new", {"X-Object-Meta-" + "n" * 129: "v"}, 400),
        ("PUT", "/o", b"new", {"X-Object-Meta-A": "no UTF-8: \udcff"}, 400),
        ("PUT", "/o", b"new", {"Content-Type": "x" * 2000}, 400),
        ("PUT", "/n", b"", {"X-Copy-From": "{container}/o"}, 400),
        ("COPY", "/o", b"", {"Destination": "{container}/x"}, 405),
        ("POST", "/o", b"", {"X-Delete-At": "2000000000"}, 400),
        ("POST", "/o", b"", {"X-Object-Meta-A": "v" * 257}, 400),
        ("GET", "/%FF", None, {}, 412),
        ("PATCH", "/o", b"", {}, 405),
    ],
)
def test_invalid_requests_are_refused_and_change_nothing(swift, path, verb, below, data, headers, status):
    swift("PUT", f"{path}/o", b"old", X_Object_Meta_Kept="yes")
    said = {name: value.replace("{container}", path[1:]) for name, value in headers.items()}
    answer = swift.raw(verb, f"{swift.root}{path}{below}", data, said)
    assert answer.status == status, answer.raw
    if verb != "HEAD":
        assert answer.raw
    kept = swift("GET", f"{path}/o")
    assert (kept.raw, kept.headers["X-Object-Meta-Kept"]) == (b"old", "yes")
    assert [each["name"] for each in swift("GET", f"{path}?format=json").body] == ["o"]


def test_an_object_needs_an_existing_container(swift):
    assert swift("PUT", "/nowhere/o", b"x").status == 404
    assert swift("GET", "/nowhere/o").status == 404
    assert swift("DELETE", "/nowhere/o").status == 404
