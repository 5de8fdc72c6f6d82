"""The output that a report includes: its beginning and its end, within the limit of a report."""

from __future__ import annotations

import json

import pytest

from stoker_agent.reports import REPORT, clip_text, fit


@pytest.mark.parametrize("limit", range(100, 112))
def test_long_output_is_clipped_between_characters_with_the_number_of_missing_bytes(tmp_path, limit):
    path = tmp_path / "stdout"
    text = "".join(f"größe {number}\n" for number in range(100))
    path.write_text(text)
    head, missing, tail = (
        clip_text(path, limit).replace("\n[… ", "|").replace(" bytes were cut here]\n", "|").split("|")
    )
    assert text.startswith(head) and text.endswith(tail)
    assert len(head.encode()) > 20 and len(tail.encode()) > 60
    assert int(missing) == len(text.encode()) - len((head + tail).encode())
    assert clip_text(path, len(text.encode())) == text
    assert clip_text(tmp_path / "none") == ""


def test_a_report_fits_although_json_escapes_lengthen_both_streams():
    values = {"deploy_stdout": "\0" * 400_000, "deploy_stderr": "\ufffd" * 400_000 + "end", "answer": "42"}
    fitted = fit(values)
    assert 0.9 * REPORT < len(json.dumps(fitted)) <= REPORT
    assert (fitted["answer"], fitted["deploy_stderr"][-3:]) == ("42", "end")


def test_an_output_too_large_for_a_report_is_a_failure_with_the_reason():
    fitted = fit({"deploy_stdout": "kept\n", "deploy_status_code": 0, "big": "x" * REPORT})
    assert fitted["deploy_status_code"] == 1
    assert "larger than a report" in fitted["deploy_status_reason"]
    assert (fitted["deploy_stdout"], "big" in fitted) == ("kept\n", False)
