"""``doctor`` names what is wrong, with a remedy and an exit code."""

from __future__ import annotations

import json

import pytest

from support.agents import own_agent
from support.certificates import Authority
from support.server import served

pytestmark = pytest.mark.slow


def diagnose(agent, *words: str) -> tuple[int, dict[str, list[tuple[str, str]]]]:
    """Return the exit code, and the outcome and the text of each check by name."""
    done = agent.call("doctor", "--json", "--root", str(agent.root), *words)
    checks: dict[str, list[tuple[str, str]]] = {}
    for check in json.loads(done.stdout):
        assert check["remedy"] or check["outcome"] in ("ok", "skip", "warn")
        checks.setdefault(check["name"], []).append((check["outcome"], check["text"]))
    return done.returncode, checks


def test_a_machine_that_is_not_enrolled_and_offline_is_checked_as_far_as_possible(agent):
    agent.root.joinpath("etc", "agent.json").unlink()
    code, checks = diagnose(agent)
    assert (code, checks["agent"]) == (1, [("FAIL", "does not run")])
    assert checks["enrolled"][0][0] == checks["network"][0][0] == "skip"
    assert checks["python"][0][0] == "ok"
    assert {outcome for outcome, _ in checks["disk"]} <= {"ok", "warn"}
    _, checks = diagnose(agent, "--url", "https://no-such-host.invalid")
    assert checks["dns"][0][0] == "FAIL"
    assert "tcp" not in checks


def test_a_machine_that_enrolls_at_its_first_start_is_checked_with_the_url_of_its_token(agent, server):
    agent.root.joinpath("etc", "agent.json").unlink()
    invitation = {"url": server.url, "token": "secret-token"}
    agent.root.joinpath("etc", "enrollment.json").write_text(json.dumps(invitation))
    done = agent.call("doctor", "--root", str(agent.root))
    assert f"enrolls at {server.url} -> it enrolls when its agent starts first" in done.stdout
    assert "secret-token" not in done.stdout
    checks = diagnose(agent)[1]
    assert checks["enrolled"][0][0] == "skip"
    assert checks["tcp"][0][0] == "ok"


def test_files_and_hooks_are_checked(agent, server):
    agent.root.joinpath("etc", "agent.json").chmod(0o644)
    agent.hook("good", "#!/bin/sh\n")
    agent.hook("bad", "#!/bin/sh\n")
    agent.root.joinpath("hooks", "bad").chmod(0o644)
    server.vanish()
    code, checks = diagnose(agent)
    assert code == 1
    assert ("FAIL", f"others can read {agent.root}/etc/agent.json (mode 0644)") in checks["files"]
    assert ("FAIL", f"{agent.root}/hooks/bad is not executable") in checks["hooks"]
    assert ("ok", f"{agent.root}/hooks/good is executable") in checks["hooks"]
    assert checks["tcp"][0][0] == "FAIL"


def test_the_whole_way_to_a_real_server(agent, tmp_path):
    authority = Authority(tmp_path / "ca")
    authority.issue("127.0.0.1")
    tls = ("--tls-cert", str(authority.chain), "--tls-key", str(authority.key), "--tls-ca", str(authority.file))
    with served(tmp_path, *tls, ca_file=authority.file) as stoker, own_agent(tmp_path / "own") as own:
        own.enroll(stoker, "web")
        config = json.loads(own.root.joinpath("etc", "agent.json").read_text())
        path = agent.root / "etc" / "agent.json"

        def use(**changes):
            path.write_text(json.dumps({**config, "ca_file": str(authority.file), **changes}))
            path.chmod(0o600)

        use()
        code, checks = diagnose(agent)
        good = ("enrolled", "proxy", "dns", "tcp", "tls", "http", "clock", "key", "document")
        assert {name: checks[name][0][0] for name in good} == {**dict.fromkeys(good, "ok"), "tls": "warn"}
        assert checks["tls"][0][1].startswith("the certificate expires in")  # a test's certificate lives for a day
        assert code == 1  # it does not run
        agent.start()
        stoker.until(lambda: diagnose(agent)[0] == 0)
        assert diagnose(agent)[1]["document"][0][0] == "skip"
        for changes, name, text in (
            ({"ca_file": None}, "tls", "the certificate is not valid"),
            ({"url": stoker.url.replace("127.0.0.1", "localhost")}, "tls", "the certificate is not valid"),
            ({"key": f"{config['server_id']}.wrong"}, "key", "Stoker refuses this agent's key"),
            ({"url": f"{stoker.url}/wrong"}, "http", "the answer is 404"),
        ):
            use(**changes)
            code, checks = diagnose(agent)
            assert code == 1
            assert checks[name][0][0] == "FAIL", checks
            assert text in checks[name][0][1]
