"""The shape of policies, what they decide, and when their windows open. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.model.errors import Invalid
from stoker.policy.rules import PROJECT, STACK, Policy, SiteDefaults, Target, Tree, admits, decide, read
from stoker.policy.windows import Window, find_change, find_closing, find_opening
from stoker.work.cron import Cron

NIGHT = {"cron": "0 2 * * *", "minutes": 120, "timezone": "Europe/Vienna"}
MINE, OTHER = Tree("11111111-mine", "web"), Tree("22222222-other", "db")
OWNED = Target(id="s1", name="web1", project_id="p", trees=frozenset({MINE.id}), owned=True)
#: Enrolled, and a resource of the stack stands for it.
ENROLLED = Target(id="s2", name="web2", project_id="p", trees=frozenset({MINE.id}))


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("STACK", {"allow": "STACK"}),
        ({}, {"allow": None}),
        ([], {"allow": []}),
        ([{"stack": "web"}, {"project": "q"}], {"allow": [{"stack": "web"}, {"project": "q"}]}),
        ({"groups": ["script", "script"]}, {"groups": ["script"]}),
        ({"groups": []}, {"groups": []}),
        ({"hooks": "STORED"}, {"hooks": "STORED"}),
        ({"hooks": ["0" * 64, "0" * 64]}, {"hooks": ["0" * 64]}),
        ({"max_concurrent_runs": "3"}, {"max_concurrent_runs": 3}),
        ({"maintenance_windows": [NIGHT]}, {"maintenance_windows": [NIGHT]}),
        (
            {"maintenance_windows": [{"cron": " 30  22 * * sun ", "minutes": "60"}]},
            {"maintenance_windows": [{"cron": "30 22 * * sun", "minutes": 60, "timezone": "UTC"}]},
        ),
    ],
)
def test_a_policy_is_stored_in_full(said: Any, shown: dict[str, Any]) -> None:
    found = read(said)
    assert found.to_json().items() >= shown.items()
    assert read(found.to_json()) == found


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("EVERYBODY", "deployment_policy: the policy 'EVERYBODY' is none of STACK, PROJECT, a list, a map"),
        (3, "deployment_policy: the policy must be"),
        (None, "deployment_policy: the policy must be"),
        ({"alow": "STACK"}, "the policy has the unknown member 'alow'"),
        ({"allow": ["web"]}, r"deployment_policy: allow\[0\] must be a map"),
        ([{"stack": "web", "project": "q"}], r"deployment_policy: \[0\] is not valid: it must be"),
        ([{"stack": ""}], r"deployment_policy: \[0\].stack must not be empty"),
        ([{"project": 7}], r"deployment_policy: \[0\].project must be a string"),
        ([{"stack": "s"}] * 101, "the policy must have at most 100 entries"),
        ({"groups": "script"}, "groups must be a list"),
        ({"hooks": "SOME"}, "hooks 'SOME' is none of NONE, STORED, ANY"),
        ({"hooks": ["abc"]}, r"hooks\[0\] "),
        ({"groups": [1]}, r"groups\[0\] must be a string"),
        ({"max_concurrent_runs": 0}, "max_concurrent_runs must be at least 1"),
        ({"max_concurrent_runs": True}, "max_concurrent_runs must be a whole number, not true or false"),
        ({"max_concurrent_runs": 1.5}, "max_concurrent_runs must be a whole number, not a number"),
        ({"maintenance_windows": NIGHT}, "maintenance_windows must be a list, not a map"),
        ({"maintenance_windows": ["2 am"]}, r"maintenance_windows\[0\] must be a map"),
        ({"maintenance_windows": [{**NIGHT, "hours": 2}]}, r"maintenance_windows\[0\] has the unknown member 'hours'"),
        ({"maintenance_windows": [{**NIGHT, "minutes": 0}]}, r"\[0\].minutes must be at least 1"),
        ({"maintenance_windows": [{"cron": "0 2 * * *"}]}, r"\[0\].minutes is required"),
        ({"maintenance_windows": [{**NIGHT, "timezone": "Vienna"}]}, "timezone 'Vienna' is not known"),
        ({"maintenance_windows": [{**NIGHT, "timezone": "../../etc/passwd"}]}, "timezone"),
        ({"maintenance_windows": [{**NIGHT, "timezone": 1}]}, "timezone must be a string"),
        *(
            ({"maintenance_windows": [{**NIGHT, "cron": wrong}]}, r"maintenance_windows\[0\].cron")
            for wrong in (
                None,
                "",
                "0 2 * *",
                "0 0 2 * * *",
                "R * * * *",
                "H 2 * * *",
                "61 2 * * *",
                "a b c d e",
            )
        ),
        ({"maintenance_windows": [{**NIGHT, "cron": "0 2 30 2 *"}]}, "never comes"),
    ],
)
def test_invalid_policies_are_named(said: Any, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        read(said)


MEMBERS = ["allow", "groups", "max_concurrent_runs", "maintenance_windows", "stack", "project", "cron", "minutes"]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*MEMBERS, "timezone", "x"]), inner),
        max_leaves=12,
    )
)
def test_any_data_is_a_policy_or_is_refused(said: Any) -> None:
    try:
        found = read(said)
    except Invalid as error:
        assert len(error.message) < 2000
    else:
        assert read(found.to_json()) == found


def who(policy: Any, server: Target, project: str = "p", stack: Tree | None = None, **more: Any) -> str | None:
    return decide(read(policy), server, project_id=project, stack=stack, **{"group": "script", **more})


def test_the_word_project_refuses_no_request_and_admits_no_other_project() -> None:
    assert who("PROJECT", OWNED, stack=OTHER) is None
    assert who("PROJECT", OWNED) is None
    assert who("PROJECT", OWNED, "q") is None
    assert not admits(read("PROJECT"), "q", stack=None)


def test_the_word_stack_admits_only_the_servers_stack() -> None:
    assert who("STACK", OWNED, stack=MINE) is None
    assert "web1 takes no deployments of the stack db" in who("STACK", OWNED, stack=OTHER)
    assert "that no stack makes" in who("STACK", OWNED)
    assert who("STACK", ENROLLED, stack=MINE) is None
    assert who("STACK", ENROLLED) is None
    assert who("STACK", ENROLLED, stack=OTHER) is not None


def test_the_sites_policy_applies_where_the_servers_policy_is_silent() -> None:
    assert who({}, OWNED, stack=OTHER) is None
    assert who({}, OWNED, stack=OTHER, site=SiteDefaults(allow=STACK)) is not None
    assert who({"groups": ["script"]}, OWNED, stack=OTHER, site=SiteDefaults(allow=STACK)) is not None
    assert who("PROJECT", OWNED, stack=OTHER, site=SiteDefaults(allow=STACK)) is None


def test_a_list_admits_further_projects_and_stacks_of_other_projects_by_id() -> None:
    said = [{"stack": "db"}, {"project": "q"}]
    assert who(said, OWNED, stack=MINE) is None
    assert who(said, OWNED, stack=OTHER) is None
    assert who([{"stack": OTHER.id}], OWNED, stack=OTHER) is None
    assert who(said, OWNED) is not None
    assert who([{"project": "p"}], OWNED) is None
    assert who(said, OWNED, "q") is None
    assert admits(read(said), "q", stack=None)
    assert not admits(read(said), "p", stack=OTHER)

    assert who([{"stack": OTHER.id}], OWNED, "q", OTHER) is None
    assert admits(read([{"stack": OTHER.id}]), "q", stack=OTHER)
    assert who([{"stack": "db"}], OWNED, "q", OTHER) is not None
    assert not admits(read([{"stack": "db"}]), "q", stack=OTHER)


def test_another_project_learns_only_the_id_that_it_sent() -> None:
    said = who({"allow": [{"stack": "secret"}], "groups": ["hidden"]}, OWNED, "q")
    assert said is not None
    for hidden in ("web1", "secret", "hidden"):
        assert hidden not in said


def test_groups_apply_to_everyone() -> None:
    said = {"groups": ["script", "puppet"]}
    assert who(said, OWNED, stack=MINE) is None
    refused = who(said, OWNED, stack=MINE, group="ansible")
    assert "web1 runs no configs of the group ansible" in refused
    assert "only script, puppet" in refused
    assert who({"groups": []}, OWNED, stack=MINE) is not None


@given(st.sampled_from([STACK, PROJECT, (), ({"stack": "db"},), ({"project": "q"},)]), st.sampled_from("pqr"))
def test_only_a_listed_stranger_counts_as_admitted(allow: Any, project: str) -> None:
    policy = read(list(allow) if isinstance(allow, tuple) else allow)
    if admits(policy, project, stack=None):
        assert project != OWNED.project_id
        assert decide(policy, OWNED, project_id=project, stack=None, group="g") is None
    elif project != OWNED.project_id and policy.allow != PROJECT:
        assert decide(policy, OWNED, project_id=project, stack=None, group="g") is not None


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def windows(*said: tuple[str, int], zone: str = "UTC") -> list[Window]:
    return [Window(Cron(expression, zone), minutes) for expression, minutes in said]


NIGHTLY = windows(("0 2 * * *", 120))
ADJOINING = windows(("0 2 * * *", 120), ("0 4 * * *", 30), ("15 4 * * *", 60))
IN_VIENNA = windows(("30 2 * * *", 20), zone="Europe/Vienna")
HOURLY_IN_VIENNA = windows(("0 * * * *", 10), zone="Europe/Vienna")


@pytest.mark.parametrize(
    ("given", "now", "opening", "closing"),
    [
        (NIGHTLY, "2026-05-01T01:59:59.999999", "2026-05-01T02:00", None),
        (NIGHTLY, "2026-05-01T02:00", None, "2026-05-01T04:00"),
        (NIGHTLY, "2026-05-01T03:59:59.999999", None, "2026-05-01T04:00"),
        (NIGHTLY, "2026-05-01T04:00", "2026-05-02T02:00", None),
        ([], "2026-05-01T04:00", None, None),
        (ADJOINING, "2026-05-01T02:30", None, "2026-05-01T05:15"),
        (windows(("0 * * * *", 60)), "2026-05-01T02:30", None, None),  # these never close
        # local time in winter and in summer
        (IN_VIENNA, "2026-01-10T12:00", "2026-01-11T01:30", None),
        (IN_VIENNA, "2026-07-10T12:00", "2026-07-11T00:30", None),
        # a time that the clock skips is the moment after the change; a repeated one is the first
        (IN_VIENNA, "2026-03-29T00:30", "2026-03-29T01:00", None),
        (IN_VIENNA, "2026-03-29T01:10", None, "2026-03-29T01:20"),
        (IN_VIENNA, "2026-03-29T01:20", "2026-03-30T00:30", None),
        (IN_VIENNA, "2026-10-25T00:00", "2026-10-25T00:30", None),
        (IN_VIENNA, "2026-10-25T01:35", "2026-10-26T01:30", None),
        # the hour that is repeated has a window each time
        (HOURLY_IN_VIENNA, "2026-10-24T23:30", "2026-10-25T00:00", None),
        (HOURLY_IN_VIENNA, "2026-10-25T00:30", "2026-10-25T01:00", None),
        (HOURLY_IN_VIENNA, "2026-10-25T01:30", "2026-10-25T02:00", None),
    ],
)
def test_windows_open_and_close(given: list[Window], now: str, opening: str | None, closing: str | None) -> None:
    assert find_opening(given, at(now)) == (at(opening) if opening else None)
    assert find_closing(given, at(now)) == (at(closing) if closing else None)


_WINDOWS = st.lists(
    st.builds(
        Window,
        st.builds(
            Cron,
            st.sampled_from(["0 2 * * *", "*/7 1-3 * * *", "30 2 * * sun", "0 0 1 * *", "59 23 * * *", "* * * * *"]),
            st.sampled_from(["UTC", "Europe/Vienna", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu"]),
        ),
        st.sampled_from([1, 20, 60, 1440, 10080]),
    ),
    min_size=1,
    max_size=3,
)
_TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)).map(lambda when: when.replace(tzinfo=UTC))


@given(_WINDOWS, _TIMES)
def test_openings_and_closings_are_consistent(windows: list[Window], now: datetime) -> None:
    opening = find_opening(windows, now)
    if opening is None:
        closing, change = find_closing(windows, now), find_change(windows, now)
        assert change is not None
        assert change > now
        assert find_opening(windows, change - timedelta(microseconds=1)) is None
        if closing is not None:
            assert change == closing
            assert find_opening(windows, closing - timedelta(microseconds=1)) is None
            assert find_opening(windows, closing) is not None
    else:
        assert opening > now
        assert find_closing(windows, now) is None
        assert find_opening(windows, opening) is None
        assert find_opening(windows, opening - timedelta(microseconds=1)) == opening
        local = opening.astimezone(ZoneInfo("UTC"))
        assert (local.second, local.microsecond) == (0, 0)


def test_an_empty_policy_decides_nothing() -> None:
    assert Policy().to_json("STACK") == {
        "allow": "STACK",
        "groups": None,
        "hooks": None,
        "max_concurrent_runs": 1,
        "maintenance_windows": [],
    }
