"""Hooks that the agent fetches for a run: verified, kept, pinned by the machine, and retried until the timeout."""

from __future__ import annotations

import hashlib

import pytest

from stoker_agent.delivered_hooks import MOST

pytestmark = pytest.mark.slow
_HOOK = b"""#!/bin/sh
read -r config
echo "{\\"deploy_stdout\\": \\"shouted by $0\\", \\"deploy_status_code\\": 0, \\"volume\\": 11}"
"""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def entry(server, id: str, hook, **inputs):
    return {**server.entry(id, "hello", group="shout", **inputs), "options": {"hook": hook}}


@pytest.fixture
def served(server):
    """The options of the hook at a URL."""
    server.files["shout.sh"] = _HOOK
    return {"url": f"{server.url}/shout.sh", "sha256": digest(_HOOK)}


def run(server, agent, entry):
    server.give(entry)
    if agent.process is None:
        agent.start()
    return server.result(entry["id"])


def test_a_hook_is_fetched_verified_and_kept(server, agent, served):
    values = run(server, agent, entry(server, "c1", served))
    assert (values["deploy_status_code"], values["volume"]) == (0, 11)
    assert values["deploy_stdout"].startswith("shouted by ")
    kept = agent.root / "state" / "delivered-hooks" / served["sha256"]
    assert (kept.stat().st_mode & 0o777, kept.read_bytes()) == (0o500, _HOOK)
    del server.files["shout.sh"]  # the next run needs no request
    assert run(server, agent, entry(server, "c2", served))["volume"] == 11


def test_a_stored_hook_is_fetched_with_the_key_of_the_server(server, agent):
    server.files[digest(_HOOK)] = _HOOK
    hook = {"url": f"/agent/v1/hooks/{digest(_HOOK)}", "sha256": digest(_HOOK), "name": "shout", "version": 1}
    assert run(server, agent, entry(server, "c1", hook))["volume"] == 11


def test_a_hook_with_another_digest_does_not_run(server, agent, served):
    values = run(server, agent, entry(server, "c1", {**served, "sha256": "0" * 64}))
    assert values["deploy_status_code"] == 1
    assert f"has the SHA-256 {served['sha256']}, not {'0' * 64}" in values["deploy_status_reason"]
    assert "volume" not in values


def test_an_altered_copy_is_fetched_again(server, agent, served):
    run(server, agent, entry(server, "c1", served))
    kept = agent.root / "state" / "delivered-hooks" / served["sha256"]
    kept.chmod(0o700)
    kept.write_text("#!/bin/sh\nexit 9\n")
    assert run(server, agent, entry(server, "c2", served))["volume"] == 11
    assert kept.read_bytes() == _HOOK


def test_the_machine_pins_its_hooks(server, agent, served):
    pins = agent.root / "etc" / "hook-digests"
    pins.write_text("# none yet\n")
    values = run(server, agent, entry(server, "c1", served))
    assert f"This machine does not permit the hook {served['url']}" in values["deploy_status_reason"]
    pins.write_text(f"{served['sha256']}  # shout 1\n")
    assert run(server, agent, entry(server, "c2", served))["volume"] == 11


def test_a_hook_that_is_not_there_fails_at_once(server, agent, served):
    missing = {**served, "url": f"{server.url}/runs/x/absent.sh"}
    values = run(server, agent, entry(server, "c1", missing, deploy_timeout="3600"))
    assert "cannot be fetched: the server answered 401" in values["deploy_status_reason"]


def test_a_server_that_is_away_is_asked_again(server, agent):
    server.answers[digest(_HOOK)] = [503]
    hook = {"url": f"/agent/v1/hooks/{digest(_HOOK)}", "sha256": digest(_HOOK)}
    server.give(entry(server, "c1", hook))
    agent.start()
    server.until(lambda: not server.answers[digest(_HOOK)])
    server.files[digest(_HOOK)] = _HOOK
    assert server.result("c1")["volume"] == 11


def test_an_unreachable_server_fails_the_run_after_its_timeout(server, agent, served):
    hook = {**served, "url": "http://127.0.0.1:1/shout.sh"}
    values = run(server, agent, entry(server, "c1", hook, deploy_timeout="2"))
    assert "http://127.0.0.1:1/shout.sh cannot be fetched: ConnectionRefusedError" in values["deploy_status_reason"]
    assert any("cannot be fetched" in (report.get("message") or "") for _, report in server.progress)


def test_a_run_that_waits_for_its_hook_can_be_cancelled(server, agent, served):
    hook = {**served, "url": "http://127.0.0.1:1/shout.sh"}
    server.give(entry(server, "c1", hook))
    agent.start()
    server.until(lambda: any("cannot be fetched" in (report.get("message") or "") for _, report in server.progress))
    server.change(cancel=True)
    assert server.result("c1")["deploy_status_reason"] == "Cancelled before it began"


def test_hooks_that_were_not_used_for_long_are_removed(server, agent, served):
    folder = agent.root / "state" / "delivered-hooks"
    folder.mkdir(parents=True)
    for number in range(MOST):
        folder.joinpath(f"{number:064x}").write_bytes(b"old")
    run(server, agent, entry(server, "c1", served))
    kept = {path.name for path in folder.iterdir()}
    assert len(kept) == MOST
    assert served["sha256"] in kept


def test_an_option_without_url_and_digest_is_refused(server, agent):
    for number, hook in enumerate(
        ("shout", {"url": "http://x/y"}, {"sha256": "0" * 64}, {"url": 1, "sha256": "0" * 64})
    ):
        values = run(server, agent, entry(server, f"c{number}", hook))
        assert values["deploy_status_reason"].startswith("The option hook needs a URL and a SHA-256")
