"""Writers who meet leave everything in order."""

from __future__ import annotations

from support.concurrency import call_together


def test_concurrent_writers_of_one_name_leave_one_object(swift):
    path = swift.container()
    answers = call_together(10, lambda n: swift("PUT", f"{path}/o", b"%d" % n * 10))
    assert {each.status for each in answers} == {201}
    assert len({each.headers["X-Timestamp"] for each in answers}) == 10
    headers = swift("HEAD", path).headers
    assert (headers["X-Container-Object-Count"], headers["X-Container-Bytes-Used"]) == ("1", "10")
    last = max(answers, key=lambda each: each.headers["X-Timestamp"])
    assert swift("HEAD", f"{path}/o").headers["ETag"] == last.headers["ETag"]


def test_concurrent_creations_make_one_container(swift):
    path = f"{swift.container()}x"
    assert sorted(call_together(8, lambda _: swift("PUT", path, b"").status)) == [201] + [202] * 7


def test_a_container_with_concurrent_writers_is_deleted_only_if_empty(swift):
    """Either it was empty and is gone, and what came later was refused, or it is there with what was written."""
    for _ in range(10):
        path = swift.container()
        statuses = call_together(
            4, lambda n, p=path: swift("DELETE", p).status if n == 0 else swift("PUT", f"{p}/{n}", b"x").status
        )
        assert statuses[0] in (204, 409)
        if statuses[0] == 204:
            assert set(statuses[1:]) == {404}
        else:
            assert int(swift("HEAD", path).headers["X-Container-Object-Count"]) == statuses.count(201) > 0
