"""State-transition tests: a deployment and a signal in, a deployment out."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.deployments.runs import resolve_signal
from stoker.model.deployment import Deployment

OUTPUTS = ({"name": "result"}, {"name": "oops", "error_output": True})
WAITING = Deployment(
    id="d",
    project_id="p",
    server_id="s",
    config_id="c",
    action="CREATE",
    status="IN_PROGRESS",
    status_reason="Waiting for the agent",
    input_values={},
    output_values={"result": "of the run before"},
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)

names = st.sampled_from(["result", "oops", "deploy_status_code", "other", "deploy_stdout"])
signals = st.dictionaries(names, st.none() | st.text(max_size=3) | st.integers(-1, 2))


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ({"deploy_status_code": 0, "result": "ok"}, "COMPLETE", "Outputs received"),
        ({"deploy_status_code": "0"}, "COMPLETE", "Outputs received"),
        ({}, "COMPLETE", "Outputs received"),
        (
            {"deploy_status_code": 1},
            "FAILED",
            "deploy_status_code : Deployment exited with non-zero status code: 1",
        ),
        ({"deploy_status_code": 0, "oops": "disk full"}, "FAILED", "oops : disk full"),
        ({"oops": ""}, "COMPLETE", "Outputs received"),
        ({"oops": None}, "COMPLETE", "Outputs received"),
        (
            {"deploy_status_code": 137, "deploy_status_reason": "Interrupted"},
            "FAILED",
            "Interrupted, deploy_status_code : Deployment exited with non-zero status code: 137",
        ),
    ],
)
def test_a_signal_decides_the_status_and_its_reason(said, status, reason):
    settled = resolve_signal(WAITING, OUTPUTS, said)
    assert (settled.status, settled.status_reason) == (status, reason)


def test_the_number_of_changed_items_fits_into_the_database():
    omitted = [{"item": "999999999 more", "outcome": "omitted"}] * 101
    ended = resolve_signal(WAITING, OUTPUTS, {"deploy_changed": True, "deploy_changes": omitted})
    assert ended.changed_items == 2**31 - 1


@given(signals, signals)
def test_the_first_signal_wins(first, second):
    settled = resolve_signal(WAITING, OUTPUTS, first)
    assert settled.status in ("COMPLETE", "FAILED")
    assert resolve_signal(settled, OUTPUTS, second) is settled


@given(signals)
def test_only_declared_outputs_are_stored(signal):
    kept = resolve_signal(WAITING, OUTPUTS, signal).output_values
    assert "other" not in kept
    assert kept.get("result") == signal.get("result")
    assert {"deploy_stdout", "deploy_stderr", "deploy_status_code"} <= set(kept)
