"""The plan of an update: the digest of its preview, with which an update does exactly what the preview shows."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.in_process import Inside
from support.templates import define, template

pytestmark = pytest.mark.filterwarnings("ignore")
SECRET = "OS::Heat::RandomString"


@pytest.fixture
def path(site) -> str:
    return site.create_stack("app", _template(8))


def _template(length: int) -> dict[str, Any]:
    key = define(SECRET, length=length)
    return template({"key": key, "same": define("OS::Heat::Value", value=1)})


def plan(site: Inside, path: str, length: int) -> str:
    answer = site.call("PATCH", f"{path}/preview", {"template": _template(length)})
    assert [change["resource_name"] for change in answer["resource_changes"]["replaced"]] == ["key"]
    return str(answer["plan"])


def update(site: Inside, path: str, length: int, plan: str, status: int = 202) -> Any:
    return site.call("PATCH", path, {"template": _template(length), "plan": plan}, status)


def test_an_update_with_the_plan_of_its_preview_is_applied(site, path):
    assert plan(site, path, 9) == plan(site, path, 9)
    update(site, path, 9, plan(site, path, 9))
    assert site.stack(path)["stack_status"] == "UPDATE_COMPLETE"


@pytest.mark.parametrize("change", ["request", "operation", "resource"])
def test_a_plan_is_refused_after_a_change(site, path, change):
    digest = plan(site, path, 9)
    if change == "operation":
        site.call("POST", f"{path}/actions", {"check": None})
    elif change == "resource":
        body = {"mark_unhealthy": True, "resource_status_reason": "broken"}
        site.call("PATCH", f"{path}/resources/same", body)
    refused = update(site, path, 10 if change == "request" else 9, digest, 409)["error"]["message"]
    assert re.search(r"is out of date.*Preview the update again", refused)
    assert site.stack(path)["stack_status"] in ("CREATE_COMPLETE", "CHECK_COMPLETE")
