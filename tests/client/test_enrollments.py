"""Enrollments, and the user data of servers, on the command line."""

import json

import pytest

MANY = ("server", "enroll", "--many", "--limit", "3")


def last_body(heat):
    """The path and the body of the last request that created something."""
    _, path, body = [entry for entry in heat.bodies if entry[0] == "POST"][-1]
    return path, body


#: words, path and members of the body
SENT = [
    (("server", "enroll", "web1"), "/servers", {"name": "web1"}),
    (("server", "enroll", "web1", "--expires", "7d"), "/servers", {"name": "web1", "expires_in": 604800}),
    (("server", "enroll", "old", "--again"), "/servers", {"name": "old", "again": True}),
    (("server", "enroll", "old", "--again", "--rerun"), "/servers", {"name": "old", "again": True, "rerun": True}),
    (
        ("server", "enroll", "web1", "--proxy", "http://proxy:1", "--with", "curl"),
        "/servers",
        {"name": "web1", "proxy": "http://proxy:1", "download": "curl"},
    ),
    (MANY, "/enrollments", {"limit": 3, "labels": {}, "approval": False}),
    (
        (*MANY, "--label", "role=web", "--label", "site=a", "--approve", "--name-from", "cloud-id", "--names", "web*"),
        "/enrollments",
        {
            "limit": 3,
            "labels": {"role": "web", "site": "a"},
            "approval": True,
            "name_from": "cloud-id",
            "names": "web*",
        },
    ),
]


@pytest.mark.parametrize(("words", "path", "members"), SENT)
def test_enroll_sends_its_options(heat, stoker, words, path, members):
    heat.add_server("old")
    result = stoker(*words)
    assert result.code == 0, result.err
    body = {"download": "python3", **members}
    assert last_body(heat) == (path, body)


def test_enroll_prints_the_line_alone_and_the_hint_as_a_message(heat, stoker):
    heat.add_server("old")
    one = stoker("server", "enroll", "web1")
    assert one.out == "echo secret | python3 -c 'install'\n"
    assert one.err.splitlines() == [
        "Paste this line on web1. It is good for one machine, until 2031-05-06T07:08:09Z.",
        "Warning: Nobody can reach it.",
    ]
    assert "on the machine that becomes old" in stoker("server", "enroll", "old", "--again").err
    many = stoker(*MANY)
    assert (many.out, "good for 3 machines" in many.err) == ("echo secret | sh\n", True)
    assert json.loads(stoker(*MANY, "-o", "json").out)["enrollment"]["token"] == "secret"
    labeled = json.loads(stoker("server", "enroll", "web2", "--label", "a=b", "-o", "json").out)
    assert labeled["server"]["labels"] == {"a": "b"}


#: words, exit code, error
REFUSED = [
    (("server", "enroll"), 2, "name the server, or say --many --limit NUMBER"),
    (("server", "enroll", "--many"), 2, "say with --limit how many machines may use the token"),
    ((*MANY, "web1"), 2, "a NAME does not go with --many"),
    ((*MANY, "--again"), 2, "--again does not go with --many"),
    (("server", "enroll", "web1", "--limit", "3"), 2, "--limit does not go without --many"),
    (("server", "enroll", "web1", "--names", "web*"), 2, "--names does not go without --many"),
    (("server", "enroll", "web1", "--approve"), 2, "--approve does not go without --many"),
    (("server", "enroll", "web1", "--name-from", "hostname"), 2, "--name-from does not go without --many"),
    (("server", "enroll", "web1", "--rerun"), 2, "--rerun needs --again"),
    (("server", "enroll", "web1", "--expires", "soon"), 2, "soon"),
    (("server", "enroll", "web1", "--label", "role"), 2, "role"),
    (("server", "enroll", "old"), 5, "stoker: A server named old exists."),
    (("server", "enroll", "new", "--again"), 4, "stoker: The Server (new) could not be found."),
    (("server", "enroll", "--many", "--limit", "2000"), 5, "stoker: limit must be at most 1000"),
    (("server", "user-data", "old"), 5, "stoker: A server named old exists."),
    (("server", "user-data"), 2, "NAME"),
    (("enrollment", "delete", "0" * 32, "--yes"), 4, "stoker: "),
    (("enrollment", "delete", "0" * 32), 2, "not deleted: not a terminal: use --yes"),
]


@pytest.mark.parametrize(("words", "code", "error"), REFUSED)
def test_an_error_has_one_line_and_changes_nothing(heat, stoker, words, code, error):
    heat.add_server("old")
    result = stoker(*words)
    assert (result.code, result.out) == (code, "")
    assert error in result.err.splitlines()[-1]
    assert code == 2 or len(result.err.splitlines()) == 1
    assert (list(heat.enrollments), [server["name"] for server in heat.servers.values()]) == ([], ["old"])


def test_user_data_is_a_cloud_config_that_runs_the_line(heat, stoker):
    result = stoker("server", "user-data", "web1", "--proxy", "http://proxy:1")
    line = "echo secret | python3 -c 'install'"
    assert result.out == f'#cloud-config\nruncmd:\n  - ["/bin/sh", "-c", "{line}"]\n'
    assert "good for one machine until" in result.err
    assert last_body(heat) == ("/servers", {"name": "web1", "proxy": "http://proxy:1"})


def test_enrollments_are_listed_and_revoked(heat, stoker):
    first = heat.add_enrollment(limit=5, labels={"b": "2", "a": "1"})
    second = heat.add_enrollment(status="USED")
    assert stoker("enrollment", "list", "-o", "name").out.split() == [first["id"], second["id"]]
    words = ("-o", "csv", "-c", "status", "-c", "limit", "-c", "labels")
    assert stoker("enrollment", "list", *words).out == 'status,limit,labels\nACTIVE,5,"a=1, b=2"\nUSED,1,\n'
    assert "Approval" in stoker("enrollment", "list", "-o", "wide").out
    assert json.loads(stoker("enrollment", "list", "-o", "json").out) == [first, second]
    prefix = first["id"][:8]
    assert stoker("enrollment", "delete", prefix, "-y").out == f"enrollment {prefix} deleted\n"
    both = stoker("enrollment", "delete", "0" * 8, second["id"], "--yes")
    assert (both.code, both.out) == (4, f"enrollment {second['id']} deleted\n")
    assert heat.enrollments == {}
