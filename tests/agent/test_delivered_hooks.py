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
_DIGEST = hashlib.sha256(_HOOK).hexdigest()
_AWAY = {"url": "http://127.0.0.1:1/shout.sh", "sha256": _DIGEST}
_STORED = {"url": f"/agent/v1/hooks/{_DIGEST}", "sha256": _DIGEST, "name": "shout", "version": 1}


def entry(server, id: str, hook, **inputs):
    return server.entry(id, "hello", group="shout", options={"hook": hook}, **inputs)


def reason(server, agent, id: str, hook, **inputs) -> str:
    values = agent.run(entry(server, id, hook, **inputs))
    assert (values["deploy_status_code"], "volume" in values) == (1, False)
    return values["deploy_status_reason"]


@pytest.fixture
def served(server):
    """The options of the hook at a URL."""
    server.files["shout.sh"] = _HOOK
    return {"url": f"{server.url}/shout.sh", "sha256": _DIGEST}


def test_a_hook_is_fetched_verified_and_kept(server, agent, served):
    folder = agent.root / "state" / "delivered-hooks"
    folder.mkdir(parents=True)
    for number in range(MOST):
        folder.joinpath(f"{number:064x}").write_bytes(b"not used for long")
    values = agent.run(entry(server, "c1", served))
    assert (values["deploy_status_code"], values["volume"]) == (0, 11)
    assert values["deploy_stdout"].startswith("shouted by ")
    kept = folder / _DIGEST
    assert (kept.stat().st_mode & 0o777, kept.read_bytes()) == (0o500, _HOOK)
    assert len(list(folder.iterdir())) == MOST
    del server.files["shout.sh"]  # the next run needs no request
    assert agent.run(entry(server, "c2", served))["volume"] == 11
    server.files["shout.sh"] = _HOOK
    kept.chmod(0o700)
    kept.write_text("#!/bin/sh\nexit 9\n")
    assert agent.run(entry(server, "c3", served))["volume"] == 11
    assert kept.read_bytes() == _HOOK


def test_a_hook_is_refused_with_a_reason(server, agent, served):
    other = {**served, "sha256": "0" * 64}
    assert f"has the SHA-256 {_DIGEST}, not {'0' * 64}" in reason(server, agent, "digest", other)
    missing = {**served, "url": f"{server.url}/runs/x/absent.sh"}
    refused = reason(server, agent, "absent", missing, deploy_timeout="3600")
    assert "cannot be fetched: the server answered 401" in refused
    refused = reason(server, agent, "away", _AWAY, deploy_timeout="2")
    assert "http://127.0.0.1:1/shout.sh cannot be fetched: ConnectionRefusedError" in refused
    assert any("cannot be fetched" in (report.get("message") or "") for _, report in server.progress)
    incomplete = ("shout", {"url": "http://x/y"}, {"sha256": "0" * 64}, {"url": 1, "sha256": "0" * 64})
    for number, hook in enumerate(incomplete):
        refused = reason(server, agent, f"incomplete-{number}", hook)
        assert refused.startswith("The option hook needs a URL and a SHA-256")


def test_the_machine_pins_its_hooks(server, agent, served):
    pins = agent.root / "etc" / "hook-digests"
    pins.write_text("# none yet\n")
    assert f"This machine does not permit the hook {served['url']}" in reason(server, agent, "c1", served)
    pins.write_text(f"{_DIGEST}  # shout 1\n")
    assert agent.run(entry(server, "c2", served))["volume"] == 11


def test_a_stored_hook_is_fetched_with_the_key_of_the_server_which_is_asked_again_when_it_is_away(server, agent):
    server.answers[_DIGEST] = [503]
    agent.begin(entry(server, "c1", _STORED))
    server.until(lambda: not server.answers[_DIGEST])
    server.files[_DIGEST] = _HOOK
    assert server.result("c1")["volume"] == 11


def test_a_run_that_waits_for_its_hook_can_be_cancelled(server, agent):
    agent.begin(entry(server, "c1", _AWAY))
    server.until(lambda: any("cannot be fetched" in (report.get("message") or "") for _, report in server.progress))
    server.change(cancel=True)
    assert server.result("c1")["deploy_status_reason"] == "Cancelled before it began"
