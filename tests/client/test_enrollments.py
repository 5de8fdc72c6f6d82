"""Enrollments, and the user data of servers, on the command line."""

import re

import yaml

MANY = ("server", "enroll", "--many", "--limit", "3")


def test_enroll_prints_the_line_alone_and_the_hint_as_a_message(site, stoker):
    site.add_agent("old")
    one = stoker("server", "enroll", "web1")
    assert re.fullmatch(r"echo [0-9a-f]{64} \| .*\n", one.out)
    first, warning = one.err.splitlines()
    assert re.fullmatch(r"Paste this line on web1. It is good for one machine, until 20.*Z\.", first)
    assert warning.startswith(f"Warning: Only the machine that Stoker runs on can reach {site.url}")
    assert "on the machine that becomes old" in stoker("server", "enroll", "old", "--again").err
    taken = stoker("server", "enroll", "old")
    assert (taken.code, taken.err.count("\n")) == (5, 1)
    many = stoker(*MANY)
    assert (many.out.count("\n"), "good for 3 machines" in many.err) == (1, True)
    enrolled = stoker(*MANY, "-o", "json").data["enrollment"]
    assert enrolled["token"] in enrolled["command"]
    words = ("web3", "-o", "json", "-c", "token", "-c", "expires_at")
    assert list(stoker("server", "enroll", *words).data) == ["token", "expires_at"]
    assert len(stoker("server", "enroll", "web4", "-o", "value", "-c", "token").out.split()) == 1
    labeled = stoker("server", "enroll", "web2", "--label", "a=b", "-o", "json").data
    assert (labeled["server"]["name"], labeled["server"]["labels"]) == ("web2", {"a": "b"})


def test_user_data_is_a_cloud_config_that_runs_the_line(site, stoker):
    result = stoker("server", "user-data", "web1", "--proxy", "http://proxy:1")
    [shell, option, line] = yaml.safe_load(result.out)["runcmd"][0]
    assert result.out.startswith("#cloud-config\nruncmd:\n")
    assert (shell, option, "http://proxy:1" in line) == ("/bin/sh", "-c", True)
    assert "good for one machine until" in result.err


def test_enrollments_are_listed_and_revoked(site, stoker):
    for limit, labels in ((5, {"b": "2", "a": "1"}), (1, {})):
        site.api("POST", "/enrollments", {"limit": limit, "labels": labels})
    first, second = site.api("GET", "/enrollments")["enrollments"]
    assert stoker("enrollment", "list", "-o", "name").out.split() == [first["id"], second["id"]]
    words = ("-o", "csv", "-c", "status", "-c", "limit", "-c", "labels", "--sort", "limit")
    assert stoker("enrollment", "list", *words).out == 'status,limit,labels\nACTIVE,1,\nACTIVE,5,"a=1, b=2"\n'
    assert "Approval" in stoker("enrollment", "list", "-o", "wide").out
    assert stoker("enrollment", "list", "-o", "json").data == [first, second]
    prefix = first["id"][:8]
    assert stoker("enrollment", "delete", prefix, "-y").out == f"enrollment {prefix} deleted\n"
    both = stoker("enrollment", "delete", "0" * 8, second["id"], "--yes")
    assert (both.code, both.out) == (4, f"enrollment {second['id']} deleted\n")
    assert site.api("GET", "/enrollments")["enrollments"] == []
