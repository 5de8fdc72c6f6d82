"""What runs write, within bounds."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.deployments import log_storage, runs
from stoker.deployments.documents import LOG_BYTES
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import deployments
from stoker.store import runs as stored_logs
from stoker.store.maintenance import in_batches
from stoker.store.open import Store
from support import databases, query
from support.clock import age
from support.deployments import begin, run_of, signal
from support.search import examples


def log(store, config_id, offset, data, stream="stdout", **how):
    said = {"server_id": "s", "config_id": config_id, "stream": stream, "most": LOG_BYTES, **how}
    return store.write(lambda tx: log_storage.append_log(tx, offset=offset, data=data, **said))


def chunks(store, deployment_id):
    """All of them, page by page."""
    found, more = [], True
    with store.read() as tx:
        while more:
            page, more = stored_logs.page_output(tx, deployment_id, found[-1].seq if found else 0)
            assert sum(each.size for each in page) <= stored_logs.PAGE_BYTES or len(page) == 1
            found += page
    return found


def text(store, deployment_id):
    return "".join(each.data for each in chunks(store, deployment_id))


def test_repeated_output_of_a_known_stream_is_kept_once(store):
    made = begin(store, "a")
    assert log(store, made.config_id, 0, b"hello ") == 6
    assert log(store, made.config_id, 3, b"lo world") == 11
    assert log(store, made.config_id, 0, b"hello") == 11
    assert text(store, made.id) == "hello world"

    with pytest.raises(Invalid):
        log(store, made.config_id, 0, b"x", stream="stdin")


def test_a_gap_is_requested_again_unless_it_is_declared_final(store):
    made = begin(store, "a")
    assert log(store, made.config_id, 100, b"later") == 0
    assert text(store, made.id) == ""
    assert log(store, made.config_id, 100, b"later", gap=True) == 105
    assert log(store, made.config_id, 50, b"before", gap=True) == 105
    assert log(store, made.config_id, 105, b"on") == 107
    assert [(each.offset, each.size, each.data) for each in chunks(store, made.id)] == [
        (100, 5, "later"),
        (105, 2, "on"),
    ]


def test_head_and_tail_are_kept_and_all_bytes_are_counted(store):
    made = begin(store, "a")
    for offset in range(0, 1000, 10):
        log(store, made.config_id, offset, b"%09d\n" % offset, most=200)
    found = chunks(store, made.id)
    head = [each for each in found if each.offset < 100]
    tail = [each for each in found if each.offset >= 100]
    assert "".join(each.data for each in head) == "".join(f"{n:09}\n" for n in range(0, 100, 10))
    assert found[-1].data == "000000990\n"
    assert [each.offset for each in tail] == list(range(tail[0].offset, 1000, 10))
    assert 80 <= sum(each.size for each in tail) <= 100
    assert run_of(store, made).stdout_bytes == 1000


def test_output_is_read_backwards_and_as_bytes(store, monkeypatch):
    monkeypatch.setattr(stored_logs, "PAGE_BYTES", 25)
    made = begin(store, "a")
    for offset in (0, 10, 20, 90):
        log(store, made.config_id, offset, b"%09d\n" % offset, gap=True)
    with store.read() as tx:
        last, more = stored_logs.page_output(tx, made.id, 0, before=2**31 - 1, run=made.config_id)
        first, rest = stored_logs.page_output(tx, made.id, 0, before=last[0].seq)
        assert ([each.offset for each in last], more) == ([20, 90], True)
        assert ([each.offset for each in first], rest) == ([0, 10], False)
        assert stored_logs.page_output(tx, made.id, 0, run="another").chunks == []
        stream = stored_logs.read_output(tx, made.id, made.config_id, "stdout")
    assert stream == b"000000000\n000000010\n000000020\n\n[60 bytes are not stored]\n000000090\n"


def test_a_tail_with_gaps_may_be_sent_again_without_them(store):
    made = begin(store, "a")
    data = b"".join(b"%09d\n" % n for n in range(100))

    def say(offset, end, **more):
        return log(store, made.config_id, offset, data[offset:end], most=400, **more)

    say(0, 200)
    say(500, 600, gap=True)
    say(780, 820, gap=True)
    say(900, 1000, gap=True)
    assert say(800, 810, again=True) == 810
    for offset in range(810, 1000, 10):
        assert say(offset, offset + 10) == offset + 10
    found = chunks(store, made.id)
    tail = [each for each in found if each.offset >= 200]
    assert tail[0].offset <= 830
    assert "".join(each.data for each in tail).encode() == data[tail[0].offset :]
    assert all(one.offset + one.size <= two.offset for one, two in pairwise(found))
    # What is of the head is not told again.
    assert say(100, 300, again=True) == 1000
    assert "".join(each.data for each in chunks(store, made.id)).encode().startswith(data[:200])


@pytest.mark.parametrize("most", [64, 100])
def test_one_piece_larger_than_the_bound_keeps_its_head_and_tail(store, most):
    made = begin(store, "a")
    data = bytes(range(32, 127)) * 20
    assert log(store, made.config_id, 0, data, most=most) == len(data)
    first, last = chunks(store, made.id)
    assert first.data.encode() == data[: most // 2]
    assert data.endswith(last.data.encode())
    assert last.offset + last.size == len(data)
    assert first.size + last.size <= most


@given(
    most=st.integers(32, 400),
    parts=st.lists(
        st.tuples(st.integers(0, 300), st.integers(1, 150), st.sampled_from(["", "gap", "again"])), max_size=25
    ),
)
@settings(max_examples=examples(20))
def test_any_output_stays_within_the_bound_and_is_kept_unaltered(most, parts, sqlite_store):
    """The stream at offset n has the byte n % 251."""
    store = sqlite_store
    made = begin(store, f"n{next(_count)}")
    known = 0
    for ahead, size, word in parts:
        offset = max(0, known + ahead - 100)
        data = bytes(n % 251 for n in range(offset, offset + size))
        known = log(store, made.config_id, offset, data, gap=word == "gap", again=word == "again", most=most)
        with store.read() as tx:
            kept = query.rows(tx, _KEPT, id=made.id)
        assert sum(len(data) for _, data in kept) <= most
        end = 0
        for offset, data in kept:
            assert offset >= end
            end = offset + len(data)
            assert bytes(data) == bytes(n % 251 for n in range(offset, end))
        assert end == known


_count = iter(range(1_000_000))
_KEPT = 'SELECT "offset", data FROM logs WHERE deployment_id = :id ORDER BY seq'


@pytest.fixture(scope="module")
def sqlite_store(tmp_path_factory, sqlite_template):
    opened = Store(databases.sqlite_url(tmp_path_factory.mktemp("output"), sqlite_template))
    yield opened
    opened.close()


def secret_run(store, secret):
    return begin(store, "a", inputs=[{"name": "key", "type": "String", "secret": True, "value": secret}])


def test_secrets_are_masked_across_chunks(store):
    made = secret_run(store, "hunter22")
    assert log(store, made.config_id, 0, b"a hunter22 b hun") == 16, "what is held back has come, all the same"
    assert text(store, made.id) == "a ******** b "
    assert log(store, made.config_id, 0, b"a hunter22 b hunt") == 17
    assert log(store, made.config_id, 17, b"er22 c") == 23
    assert text(store, made.id) == "a ******** b ******** c"
    assert [(each.offset, each.size) for each in chunks(store, made.id)] == [(0, 13), (13, 10)]
    assert log(store, made.config_id, 0, b"hunter22", stream="stderr") == 8
    assert "hunter" not in text(store, made.id)


def test_text_that_might_begin_a_secret_is_stored_at_the_end(store):
    made = secret_run(store, "hunter22")
    assert log(store, made.config_id, 0, b"going hun") == 9
    assert log(store, made.config_id, 0, b"going hunter", stream="stderr") == 12
    signal(store, made, deploy_status_code=0)
    assert [each.data for each in chunks(store, made.id)] == ["going ", "going ", "hun", "******"]


def test_a_part_of_a_secret_before_a_gap_is_masked(store):
    made = secret_run(store, "hunter22")
    assert log(store, made.config_id, 0, b"x hunte") == 7
    assert log(store, made.config_id, 100, b"r22 hunter22", gap=True) == 112
    assert text(store, made.id) == "x *****r22 ********"


def test_a_report_is_masked_and_its_reason_too(store):
    made = secret_run(store, "hunter22")
    signal(store, made, deploy_stdout="it is hunter22\n", result="hunter22", deploy_status_reason="no hunter22")
    assert text(store, made.id) == "it is ********\n"
    with store.read() as tx:
        found = deployments.get(tx, made.id)
        assert found.status_reason == "no ******"
        assert found.output_values["result"] == "hunter22", "others may take it for an input"
        assert tx.secrets.redact(found.output_values)["result"] == "******"
        assert deployments.get(tx, made.id).run.status_reason == "no ******"


def test_a_run_of_another_server_is_not_found(store):
    made = begin(store, "a")
    for say in (
        lambda tx: log_storage.append_log(
            tx, server_id="t", config_id=made.config_id, stream="stdout", offset=0, data=b"x", most=9
        ),
        lambda tx: runs.progress(tx, server_id="t", config_id=made.config_id, percent=1, message=None),
        lambda tx: runs.heartbeat(tx, server_id="t", config_id=made.config_id),
    ):
        with pytest.raises(EntityNotFound):
            store.write(say)


def purge(store):
    before = datetime.now(UTC) - timedelta(days=30)
    return in_batches(store, lambda tx, most: stored_logs.purge_output(tx, before, most))


def test_output_expires_only_after_its_run_has_ended(store):
    over, going = begin(store, "over"), begin(store, "going")
    for made in (over, going):
        log(store, made.config_id, 0, b"old")
    signal(store, over)
    assert purge(store) == 0
    age(store, "logs", 31 * 86400)
    log(store, going.config_id, 3, b"new")
    assert purge(store) == 1
    assert (text(store, over.id), text(store, going.id)) == ("", "oldnew")


def test_long_output_is_kept_in_chunks_cut_between_characters(store):
    made = begin(store, "a")
    data = ("é" * 100_001).encode()
    log(store, made.config_id, 0, data)
    found = chunks(store, made.id)
    assert [each.offset for each in found] == [0, *itertools.accumulate(each.size for each in found)][:-1]
    assert max(each.size for each in found) <= stored_logs.PAGE_BYTES
    assert text(store, made.id) == data.decode()
