"""`stoker relay run` and `install`: what they write, and what they refuse before they change anything."""

from __future__ import annotations

import asyncio
import hashlib
import stat

import pytest
from click.testing import CliRunner

from stoker.http.access import Caller
from stoker.http.request import RequestContext, Response
from stoker.model.errors import Unavailable
from stoker_relay.downloads import Downloads
from stoker_relay.install_command import install, start
from stoker_relay.options import PROBLEM
from stoker_relay.polls import Polls
from stoker_relay.run_command import run
from support.handler_requests import request_to

KEY = f"{'0' * 8}-0000-0000-0000-{'0' * 12}.{'a' * 64}"


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    return path


def test_install_writes_the_key_and_the_unit(tmp_path, key_file):
    for name in ("relay.crt", "relay.key"):
        tmp_path.joinpath(name).write_text("PEM")
    tls = ["--tls-cert", str(tmp_path / "relay.crt"), "--tls-key", str(tmp_path / "relay.key")]
    words = ["--center", "https://stoker.example:8004/a%20b", "--key-file", str(key_file), "--host", "0.0.0.0"]
    for _ in range(2):  # a repetition replaces both
        done = CliRunner().invoke(install, [*words, *tls, "--root", str(tmp_path / "root")])
        assert done.exit_code == 0, done.output
    key = tmp_path / "root/etc/stoker-relay/key"
    assert (key.read_text(), stat.S_IMODE(key.stat().st_mode)) == (f"{KEY}\n", 0o600)
    unit = tmp_path.joinpath("root/etc/systemd/system/stoker-relay.service").read_text()
    [command] = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    assert " relay run --center https://stoker.example:8004/a%%20b --key-file ${CREDENTIALS_DIRECTORY}/key " in command
    assert command.endswith(" --tls-cert ${CREDENTIALS_DIRECTORY}/tls-cert --tls-key ${CREDENTIALS_DIRECTORY}/tls-key")
    assert f"LoadCredential=tls-key:{tmp_path}/relay.key\n" in unit
    assert KEY not in unit
    assert "\nType=notify\n" in unit  # systemctl waits until the relay serves


@pytest.mark.parametrize(
    "restart, status, message",
    [
        ("exit 0", "the central Stoker answers", None),
        (
            "echo 'Job for stoker-relay.service failed.' >&2; exit 1",
            "",
            "the relay does not serve: cannot listen on 0.0.0.0:8005: Address already in use",
        ),
        ("exit 0", f"{PROBLEM}it refuses", "the relay serves, but it cannot reach the central Stoker: it refuses"),
    ],
)
def test_the_start_of_the_service_fails_with_the_reason(tmp_path, monkeypatch, restart, status, message):
    programs = {
        "systemctl": f'case "$1" in restart) {restart};; show) echo "{status}";; esac',
        "journalctl": "echo 'Error: earlier'; echo 'Error: cannot listen on 0.0.0.0:8005: Address already in use';"
        " echo 'stoker-relay.service: Main process exited'",
    }
    for name, script in programs.items():
        tmp_path.joinpath(name).write_text(f"#!/bin/sh\n{script}\n")
        tmp_path.joinpath(name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    if message is None:
        start()
        return
    with pytest.raises(Unavailable) as caught:
        start()
    assert message in caught.value.message


@pytest.mark.parametrize(
    "words, message",
    [
        (["--center", "stoker.example"], "--center 'stoker.example' is not the URL of a Stoker"),
        (["--host", "0.0.0.0"], "--insecure-http"),
        (["--tls-cert", "/nowhere"], "--tls-cert and --tls-key go together"),
        (["--ca-file", "/etc/hostname"], "/etc/hostname (named by --ca-file) has no certificates"),
        (["--metrics-token-file", "/etc/hostname"], "--metrics-token-file names must have at least 32 bytes"),
        (["--ca-file", "/nowhere"], "cannot read /nowhere (named by --ca-file)"),
        (["--key-file", "/nowhere"], "cannot read /nowhere (named by --key-file)"),
        (["--key-file", "/etc/hostname"], "the key is not one that `stoker relay create` has printed"),
    ],
)
@pytest.mark.parametrize("command", [run, install], ids=["run", "install"])
def test_wrong_options_are_refused(tmp_path, key_file, command, words, message):
    target = tmp_path / "target"
    folder = [] if command is run else ["--root", str(target)]
    options = ["--center", "http://stoker.example:8004", "--key-file", str(key_file), *folder, *words]
    done = CliRunner().invoke(command, options)
    assert done.exit_code == 1
    assert message in done.output
    assert not target.exists()


def file_answer(content: bytes, digest: str | None = None) -> Response:
    digest = hashlib.sha256(content).hexdigest() if digest is None else digest
    return Response(200, content, {"etag": f'"{digest}"'}, "application/zip")


@pytest.mark.anyio
async def test_a_file_is_downloaded_once_and_authorized_at_each_use(monkeypatch):
    requests = []

    def fetch(*answers: Response):
        remaining = list(answers)

        async def send(tag):
            requests.append(tag)
            await asyncio.sleep(0)
            return remaining.pop(0)

        return send

    downloads = Downloads()
    content, tag = file_answer(b"old"), file_answer(b"old").headers["etag"]
    both = fetch(content, Response(304))
    assert [answer.content for answer in await asyncio.gather(*(downloads.get("f", both) for _ in range(2)))] == [
        b"old",
        b"old",
    ]
    assert requests == ["", tag]
    assert (await downloads.get("f", fetch(Response(404)))).status == 404  # not for this agent
    assert (await downloads.get("f", fetch(file_answer(b"damaged", "0" * 64)))).content == b"damaged"
    assert (await downloads.get("f", fetch(file_answer(b"new")))).content == b"new"
    assert requests[2:] == [tag, tag, ""]
    # The file that was not used for the longest time leaves.
    monkeypatch.setattr("stoker_relay.downloads._BYTES", 7)
    await downloads.get("g", fetch(file_answer(b"four")))
    await downloads.get("f", fetch(Response(304)))
    await downloads.get("h", fetch(file_answer(b"five")))
    requests.clear()
    for name in ("f", "g"):
        await downloads.get(name, fetch(file_answer(b"again")))
    assert [bool(each) for each in requests] == [True, False]


def poll_of(polls: Polls, server: str, etag: str = '"1"') -> RequestContext:
    sent = {"authorization": f"Bearer {server}.key", "if-none-match": etag, "x-stoker-agent": "0.1.0"}
    return request_to(polls, {}, sent, Caller(server=server))


@pytest.mark.anyio
async def test_a_change_that_overtakes_the_answer_to_a_poll_is_not_lost():
    """The stream and the answer come over two connections: the line may be there before an older 304."""

    answers = [Response(304), Response(304), Response(200, b"new", {"ETag": '"3"'})]

    async def fetch(_):
        if len(answers) == 2:
            polls.apply({"a": 3}, [])
        return answers.pop(0)

    polls = Polls(fetch)
    assert (await polls.poll(poll_of(polls, "a"), 0)).status == 304
    polls.apply({"a": 2}, [])
    assert (await polls.poll(poll_of(polls, "a"), 60)).content == b"new"


@pytest.mark.anyio
async def test_a_relay_serves_a_limited_number_of_agents(monkeypatch):
    monkeypatch.setattr("stoker_relay.polls.MOST_AGENTS", 1)

    async def fetch(_):
        return Response(304)

    polls = Polls(fetch)
    assert (await polls.poll(poll_of(polls, "a"), 0)).status == 304
    with pytest.raises(Unavailable, match="serves 1 agents already"):
        await polls.poll(poll_of(polls, "b"), 0)
    assert (await polls.poll(poll_of(polls, "a"), 0)).status == 304
    monkeypatch.setattr("stoker_relay.polls._GRACE_SECONDS", -1)
    polls.changed.clear()
    polls.expire()
    assert polls.changed.is_set()
    assert (await polls.poll(poll_of(polls, "b"), 0)).status == 304
    assert polls.describe_agents() == {"0.1.0": ["b.key"]}
