"""Calls through an HTTP proxy, and the settings for it."""

from __future__ import annotations

import json
import shutil

import pytest

from stoker_agent import proxy
from stoker_agent.config import Unusable
from stoker_agent.proxy import find_proxy
from stoker_agent.web import Unreachable, Web
from support.certificates import Authority
from support.http_proxy import http_proxy
from support.ports import free_port
from support.server import served


@pytest.fixture(autouse=True)
def no_proxy_of_the_developer(monkeypatch):
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    yield
    proxy.configure(None, None)


@pytest.mark.parametrize(
    ("host", "direct"),
    [
        ("stoker.example", False),
        ("a.internal.example", True),
        ("internal.example", True),
        ("notinternal.example", False),
        ("10.1.2.3", True),
        ("11.1.2.3", False),
        ("localhost", True),
        ("127.0.0.9", True),
        ("::1", True),
    ],
)
def test_exceptions_and_this_machine_are_called_directly(host, direct):
    proxy.configure("http://proxy.example", ".internal.example, 10.0.0.0/8,broken/99")
    found = find_proxy("https", host)
    assert (found is None) == direct
    if found:
        assert (found.host, found.port, found.headers) == ("proxy.example", 3128, {})


def test_agent_json_precedes_the_environment(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://other.example:1")
    monkeypatch.setenv("NO_PROXY", "direct.example")
    assert find_proxy("https", "a.example").host == "other.example"
    assert find_proxy("http", "a.example") is None
    assert find_proxy("https", "direct.example") is None
    proxy.configure("http://proxy.example:2", None)
    assert find_proxy("http", "a.example").port == 2
    proxy.configure("", None)
    assert find_proxy("https", "a.example") is None


@pytest.mark.parametrize(
    "url", ["https://secret@p:1", "http://", "socks5://secret@p", "http://u:secret@p:x", "http://p/a"]
)
def test_an_invalid_url_is_refused_without_its_password(url):
    with pytest.raises(Unusable) as error:
        proxy.configure(url, None)
    assert "secret" not in str(error.value)


@pytest.mark.slow
def test_an_agent_works_through_a_proxy_with_a_login_that_no_log_contains(agent, server):
    with http_proxy("me:pass word") as running:
        url = server.url.replace("127.0.0.1", "stoker.example")
        config = {"url": url, "server_id": "s1", "key": "s1.secret"}
        path = agent.root / "etc" / "agent.json"
        path.write_text(json.dumps(config))
        change = [*("config", "set", "proxy"), "-", "--root", str(agent.root)]
        wrong = agent.call("config", "set", "proxy", "http://me:pass@h", "--root", str(agent.root))
        assert (wrong.returncode, "every user of this machine can read" in wrong.stderr) == (1, True)
        done = agent.call(*change, input=f"http://me:pass%20word@127.0.0.1:{running.port}\n")
        assert done.returncode == 0, done.stderr
        shown = agent.call("config", "show", "--root", str(agent.root)).stdout
        assert f"http://…@127.0.0.1:{running.port}" in shown
        assert agent.run(server.entry("c1", "#!/bin/sh\nenv"))["deploy_status_code"] == 0
        assert {target.partition(":")[0] for target in running.targets} == {"stoker.example"}
        status = agent.call("status", "--json", "--root", str(agent.root)).stdout
        log = agent.root.joinpath("logs", "agent.log").read_text()
        texts = [agent.log, log, status, shown, server.result("c1")["deploy_stdout"]]
        assert not any("pass" in text for text in texts)
        running.login = "me:other"
        agent.end()
        agent.start()
        server.until(lambda: running.refused)
        assert "pass" not in agent.log


@pytest.mark.slow
def test_https_goes_through_a_tunnel_and_a_replaced_ca_needs_no_new_connection_pool(tmp_path):
    authority, other = Authority(tmp_path / "ca"), Authority(tmp_path / "other", "other CA")
    authority.issue("127.0.0.1", "stoker.example")
    tls = ("--tls-cert", str(authority.chain), "--tls-key", str(authority.key), "--tls-ca", str(authority.file))
    with served(tmp_path, *tls, ca_file=authority.file) as stoker, http_proxy("u:p") as running:
        proxy.configure(f"http://u:p@127.0.0.1:{running.port}", None)
        trusted = tmp_path / "trusted.pem"
        trusted.write_bytes(other.file.read_bytes())
        web = Web(str(trusted))
        url = f"https://stoker.example:{stoker.port}/agent/v1/install"
        with pytest.raises(Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
            web.call("GET", url)
        trusted.write_bytes(authority.file.read_bytes())
        assert web.call("GET", url).status == 200
        web.close()
        proxy.configure(f"http://u:wrong@127.0.0.1:{running.port}", None)
        with pytest.raises(Unreachable, match="407") as error:
            Web(str(trusted)).call("GET", url)
        assert "wrong" not in str(error.value)
    assert set(running.targets) == {f"stoker.example:{stoker.port}"}


@pytest.fixture
def distant(tmp_path):
    """A server whose public URL only the proxy can reach, and the proxy."""
    port = free_port()
    with (
        served(tmp_path, "--public-url", f"http://stoker.example:{port}", port=port) as stoker,
        http_proxy() as running,
    ):
        yield stoker, running


@pytest.mark.slow
@pytest.mark.parametrize("download", ["python3", "curl", "wget"])
def test_a_printed_line_with_a_proxy_enrolls_the_machine_behind_it(distant, machine, download):
    stoker, running = distant
    for name in {download, "sha256sum"} - {"python3"}:
        if shutil.which(name) is None:
            pytest.skip(f"this host has no {name}")
        machine.add_tool(name)
    url = f"http://127.0.0.1:{running.port}"
    stoker.environment["http_proxy"] = url
    line = stoker.run("server", "enroll", "web", "--with", download, "--proxy", url).stdout
    failed = machine.paste(line.replace(f"http_proxy={url}", "http_proxy="))
    assert (failed.returncode != 0, machine.root.exists()) == (True, False)
    running.targets.clear()
    machine.install(line)
    assert machine.config["proxy"] == url
    stoker.until(lambda: stoker.heat("GET", "/servers/web").body["server"]["status"] == "ONLINE")
    assert {target.partition(":")[0] for target in running.targets} == {"stoker.example"}


@pytest.mark.slow
def test_the_proxy_of_the_environment_is_stored_and_stays_with_a_later_line(distant, machine):
    stoker, running = distant
    url = f"http://127.0.0.1:{running.port}"
    line = stoker.heat("POST", "/servers", {"name": "web"}).body["enrollment"]["command"]
    machine.install(line, http_proxy=url, no_proxy="direct.example")
    assert (machine.config["proxy"], machine.config["no_proxy"]) == (url, "direct.example")
    stoker.until(lambda: stoker.heat("GET", "/servers/web").body["server"]["status"] == "ONLINE")
    again = stoker.heat("POST", "/servers", {"name": "other"}).body["enrollment"]
    token = machine.root / "token"
    token.write_text(again["token"])
    enrolled = machine.run_agent("enroll", "--url", machine.config["url"], "--token-file", str(token))
    assert enrolled.returncode == 0, enrolled.stderr
    assert (machine.config["proxy"], machine.config["no_proxy"]) == (url, "direct.example")
