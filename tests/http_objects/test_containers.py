"""Accounts and containers: metadata, totals and listings."""

from __future__ import annotations

import json
import uuid
from urllib.parse import quote

import pytest

from stoker.objects import limits


def test_an_account_exists_without_creation_and_has_totals(swift):
    before = swift("HEAD", "")
    assert before.status == 204
    path = swift.container()
    swift("PUT", f"{path}/o", b"12345")
    after = swift("HEAD", "").headers
    for name, more in (("Container-Count", 1), ("Object-Count", 1), ("Bytes-Used", 5)):
        assert int(after[f"X-Account-{name}"]) == int(before.headers[f"X-Account-{name}"]) + more


def test_account_metadata_is_set_and_removed(swift):
    assert swift("POST", "", b"", X_Account_Meta_Color="grün", X_Account_Meta_Shape="round").status == 204
    headers = swift("HEAD", "").headers
    assert headers["X-Account-Meta-Color"].encode("latin-1").decode() == "grün"
    assert swift("POST", "", b"", X_Account_Meta_Color="", X_Remove_Account_Meta_Shape="x").status == 204
    headers = swift("HEAD", "").headers
    assert "X-Account-Meta-Color" not in headers
    assert "X-Account-Meta-Shape" not in headers


def test_a_container_is_created_described_and_deleted_when_empty(swift):
    path = f"/c{uuid.uuid4().hex}"
    assert swift("HEAD", path).status == 404
    assert swift("PUT", path, b"", X_Container_Meta_A="1").status == 201
    assert swift("PUT", path, b"", X_Container_Meta_B="2").status == 202
    assert swift("POST", path, b"", X_Container_Meta_A="").status == 204
    headers = swift("HEAD", path).headers
    assert headers["X-Container-Meta-B"] == "2"
    assert "X-Container-Meta-A" not in headers
    swift("PUT", f"{path}/o", b"abc")
    headers = swift("HEAD", path).headers
    assert (headers["X-Container-Object-Count"], headers["X-Container-Bytes-Used"]) == ("1", "3")
    assert swift("DELETE", path).status == 409
    assert swift("DELETE", f"{path}/o").status == 204
    assert swift("DELETE", path).status == 204
    assert swift("DELETE", path).status == 404
    assert swift("POST", path, b"").status == 404


def test_a_listing_is_text_or_json(swift):
    path = swift.container()
    empty = swift("GET", path)
    assert (empty.status, empty.raw) == (204, b"")
    assert swift("GET", f"{path}?format=json").body == []
    swift("PUT", f"{path}/{quote('<&>')}", b"x", Content_Type="text/x-y")
    listed = swift("GET", path, Accept="application/json")
    assert listed.headers["Content-Type"] == "application/json; charset=utf-8"
    [entry] = listed.body
    assert entry["hash"] == "9dd4e461268c8034f5c8564e155c67a6"
    assert (entry["name"], entry["bytes"], entry["content_type"]) == ("<&>", 1, "text/x-y")
    assert len(entry["last_modified"]) == len("2026-01-01T00:00:00.000000")
    plain = swift("GET", path)
    assert (plain.raw, plain.headers["Content-Type"]) == (b"<&>\n", "text/plain; charset=utf-8")
    assert [len(swift("GET", f"{path}?format=json&limit={limit}").body) for limit in ("0", "x")] == [0, 1]
    assert swift("GET", f"{path}?limit=10001").status == 412
    assert swift("GET", f"{path}?prefix=%ff").status == 400


def test_an_account_lists_its_containers(swift):
    path = swift.container()
    swift("PUT", f"{path}/o", b"abc")
    listed = swift("GET", f"?format=json&prefix={path[1:]}").body
    assert [(each["name"], each["count"], each["bytes"]) for each in listed] == [(path[1:], 1, 3)]
    assert swift("GET", f"?prefix={path[1:]}").raw.decode() == f"{path[1:]}\n"
    assert {"subdir": "c"} in swift("GET", "?format=json&delimiter=c").body


@pytest.mark.parametrize(
    ("verb", "path", "headers", "status"),
    [
        ("PUT", "/" + "x" * 257, {}, 400),
        ("PUT", "/c", {"X-Container-Meta-" + "n" * 129: "1"}, 400),
        ("PUT", "/c", {"X-Container-Meta-N": "v" * 257}, 400),
        ("PUT", "/c", {f"X-Container-Meta-{n}": "1" for n in range(91)}, 400),
        ("PUT", "/c", {f"X-Container-Meta-{n}": "v" * 200 for n in range(30)}, 400),
        ("PUT", "/c", {"X-Container-Read": ".r:*"}, 400),
        ("PUT", "/c", {"X-Versions-Enabled": "true"}, 400),
        ("PUT", "/c", {"X-Versions-Location": "a"}, 400),
        ("PUT", "/c", {"X-History-Location": "a"}, 400),
        ("PUT", "/%ff", {}, 412),
        ("PUT", "/%00", {}, 404),
        ("PUT", "", {}, 405),
        ("POST", "", {"X-Account-Meta-" + "n" * 129: "1"}, 400),
    ],
)
def test_invalid_headers_change_nothing(swift, verb, path, headers, status):
    before = swift("GET", "?format=json").body, swift("HEAD", "").headers.get("X-Account-Meta-N")
    answer = swift.raw(verb, swift.root + path, b"", headers)
    assert answer.status == status, answer.raw
    assert answer.raw
    assert "text/" in answer.headers["Content-Type"]
    assert (swift("GET", "?format=json").body, swift("HEAD", "").headers.get("X-Account-Meta-N")) == before


def test_the_capabilities_are_listed(swift):
    found = json.loads(swift.raw("GET", "/object-store/info", token=None).raw)
    assert found["swift"]["max_file_size"] == limits.OBJECT_SIZE
    assert found["tempurl"]["allowed_digests"] == ["sha256", "sha512"]
    # Nothing else: clients use what is listed. openstacksdk fails without "slo".
    assert sorted(found) == ["slo", "swift", "tempurl"]
    assert found["slo"]["max_manifest_segments"] == 0
    assert not [name for name in found["swift"] if "cors" in name]
