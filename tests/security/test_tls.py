"""TLS: with a private CA everything works, a renewed certificate needs no restart, and nothing secret goes plain."""

from __future__ import annotations

import email
import http.client
import json
import re
import socket
import ssl
import subprocess
import tempfile
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from stoker import settings as all_settings
from stoker.commands import login
from stoker.model.errors import Invalid
from stoker.serve.tls import Certificate, check_exposure, client_problem, open_tls, read_client_ca
from stoker.types.user_data import SOFTWARE_CONFIG, build
from support.certificates import Authority, replace
from support.server import LOCAL_SERVERS, served
from support.templates import config, define, deployment, template

METRICS_TOKEN = "a-token-for-monitoring-that-nobody-guesses"


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    issued = Authority(tmp_path_factory.mktemp("ca"))
    issued.issue("127.0.0.1", "localhost")
    return issued


@pytest.fixture(scope="module")
def secure(tmp_path_factory, authority):
    flags = (*authority.flags, "--tls-ca", str(authority.file), "--client-timeout", "5", LOCAL_SERVERS)
    flags += ("--metrics-token", METRICS_TOKEN)
    with served(tmp_path_factory.mktemp("tls"), *flags, clouds_yaml=True, ca_file=authority.file) as stoker:
        yield stoker


def load(tmp_path, **flags):
    return all_settings.load({"state_dir": str(tmp_path), **{k: str(v) for k, v in flags.items()}}, {}, None)


@pytest.fixture
def connect(secure):
    """Connections to it, handshake done; closed at the end."""
    with ExitStack() as left:

        def open_one(**more) -> http.client.HTTPSConnection:
            trust = ssl.create_default_context(cafile=secure.ca_file)
            for name, value in more.items():
                setattr(trust, name, value)
            connection = http.client.HTTPSConnection("127.0.0.1", secure.port, context=trust, timeout=60)
            left.callback(connection.close)
            connection.connect()
            return connection

        yield open_one


def serial(connection: http.client.HTTPSConnection) -> int:
    return x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True)).serial_number


def healthy(connection: http.client.HTTPSConnection) -> bool:
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    answer.read()
    return answer.status == 200


def test_a_renewed_certificate_is_served_and_open_connections_stay(secure, authority, connect):
    earlier = connect()
    assert healthy(earlier)
    renewed = authority.issue("127.0.0.1", "localhost")
    later = connect()
    assert serial(later) == renewed != serial(earlier)
    assert healthy(later)
    assert healthy(earlier)

    replace(authority.chain, b"no certificate")
    broken = connect()
    assert serial(broken) == renewed
    assert healthy(broken)
    log = secure.state_dir.joinpath("logs", "stoker.log").read_text()
    assert log.count("tls.reload_failed") == 1

    again = authority.issue("127.0.0.1", "localhost")
    assert serial(connect()) == again
    assert healthy(earlier)


def test_a_stop_with_an_idle_connection_logs_no_error(tmp_path, authority):
    flags = (*authority.flags, "--tls-ca", str(authority.file))
    with served(tmp_path, *flags, ca_file=authority.file) as stoker:
        assert stoker.request("GET", "/healthz").status == 200  # the connection stays open
        assert stoker.stop() == 0
        lines = stoker.state_dir.joinpath("logs", "stoker.log").read_text().splitlines()
        assert [line for line in lines if json.loads(line)["level"] in ("warning", "error")] == []


def test_old_tls_versions_and_plain_http_are_refused(secure, authority):
    certificate = Certificate(authority.chain, authority.key)
    # Today's clients cannot even ask for what is older.
    assert certificate.context.minimum_version == ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", secure.port), timeout=60) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1" not in plain.recv(1000)


def test_clients_verify_with_the_ca_of_clouds_yaml_and_environment(secure):
    assert secure.environment["OS_CACERT"] == str(secure.state_dir / "ca.pem")
    secure.run("stack", "list")
    home = {name: value for name, value in secure.environment.items() if not name.startswith("OS_")}
    secure.run("--os-cloud", "stoker", "stack", "list", environment=home)
    distrusting = {name: value for name, value in secure.environment.items() if name != "OS_CACERT"}
    refused = secure.run("stack", "list", check=False, environment=distrusting)
    assert refused.returncode == 6
    assert "certificate" in refused.stderr.lower()
    assert "Traceback" not in refused.stderr


def test_the_end_of_the_certificate_is_reported(secure, authority):
    def status(code):
        """What ``stoker status`` prints when it exits with ``code``."""
        secure.until(lambda: secure.run("status", check=False).returncode == code)
        done = secure.run("status", check=False)
        return " ".join((done.stdout + done.stderr).split())

    try:
        authority.issue("127.0.0.1", "localhost", left=timedelta(hours=1))
        assert f"certificate: the certificate in {authority.chain} expires soon" in status(1)
        metrics = secure.request("GET", "/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).raw.decode()
        (end,) = re.findall(r"^stoker_certificate_expiry_timestamp_seconds\S* (\S+)$", metrics, re.MULTILINE)
        assert 3000 < float(end) - time.time() < 3700
        authority.issue("127.0.0.1", "localhost", left=timedelta(hours=-1))
        assert "certificate has expired; renew the service's certificate" in status(6)
        secure.until(lambda: "has expired" in secure.output)
        (line,) = (line for line in secure.output.splitlines() if "has expired" in line)
        assert "health.changed" in line
        assert "warning" in line
    finally:
        authority.issue("127.0.0.1", "localhost")


def test_a_ca_file_that_the_user_cannot_read_is_named(secure, tmp_path):
    lost = str(tmp_path / "lost.pem")
    done = secure.run("status", check=False, environment={**secure.environment, "OS_CACERT": lost})
    assert (done.returncode, f"cannot read the CA's certificate {lost} (OS_CACERT" in done.stderr) == (1, True), done


def test_the_login_names_a_ca_file_for_all_users(tmp_path):
    own = tmp_path / "ca.pem"
    with tempfile.TemporaryDirectory() as folder:
        public = Path(folder, "ca.pem")
        public.touch(0o644)
        assert login.find_public_ca(public, own) == own
        Path(folder).chmod(0o755)
        assert login.find_public_ca(public, own) == public
        public.chmod(0o640)
        assert login.find_public_ca(public, own) == own
    assert login.find_public_ca(Path(), own) == own
    assert login.find_public_ca(public, None) is None


def test_stokers_agents_and_calls_verify_the_certificate(secure):
    """A local server's agent, and the call that creates a stack of this region, know the CA."""
    inner = template({"value": define("OS::Heat::Value", value="inner")})
    resources = {
        "config": config("#!/bin/sh\nprintf 'ran over TLS' > $heat_outputs_path.words", outputs=("words",)),
        "server": define("OS::Nova::Server", user_data_format="SOFTWARE_CONFIG"),
        "run": deployment(),
        "stack": define("OS::Heat::Stack", template=json.dumps(inner)),
    }
    outputs = {"words": {"value": {"get_attr": ["run", "words"]}}}
    stack = secure.create_stack("tls", template(resources, outputs=outputs))
    secure.await_stack(stack)
    assert secure.outputs(stack) == {"words": "ran over TLS"}


def test_a_booting_server_verifies_with_the_ca_in_its_user_data(secure, tmp_path):
    def install(ca_certificates):
        """Its return code, and the program; below ``tmp_path``, and without a service."""
        text = build(
            SOFTWARE_CONFIG,
            metadata={},
            public_url=secure.url,
            ca_certificates=ca_certificates,
            stoker_agent=True,
        )
        parts = email.message_from_string(text).walk()
        script = next(part.get_payload() for part in parts if part.get_filename() == "stoker-agent.sh")
        for place in ("/usr/local/lib/stoker", "/var/lib/heat-cfntools", "/run/systemd/system"):
            script = script.replace(place, f"{tmp_path}{place}")
        script, retries = re.subn(r"for seconds in \([^)]*\)", "for seconds in (None,)", script)
        assert retries == 1
        done = subprocess.run(["sh"], input=script, text=True, capture_output=True, timeout=60, check=False)
        program = tmp_path / "usr/local/lib/stoker/stoker-agent.pyz"
        return done.returncode, program.read_bytes() if program.exists() else None

    code, program = install(None)
    assert code != 0
    assert program is None
    expected = secure.request("GET", "/agent/v1/stoker-agent.pyz").raw
    assert install(secure.ca_file.read_text()) == (0, expected)


def test_a_connection_without_a_tls_handshake_is_closed(secure):
    """After the time that a request's head may take, not after the minute that the event loop would wait."""
    with socket.create_connection(("127.0.0.1", secure.port), timeout=60) as idle:
        assert idle.recv(1) == b""


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"host": "0.0.0.0"}, "--insecure-http"),
        ({"host": "192.0.2.7"}, "--tls-cert and --tls-key"),
        ({"host": "::", "public_url": "http://stoker.example.org"}, "--public-url https://"),
        ({"tls_cert": "c.pem"}, "tls_cert and tls_key need one another"),
        ({"tls_cert": "c.pem", "tls_key": "k.pem", "public_url": "http://x"}, "must begin with https://"),
        # Local servers run users' scripts as the server's own user.
        *(
            ({"host": host, "local_servers_unsafe": "true", "insecure_http": "true"}, f"loopback address, not {host}")
            for host in ("0.0.0.0", "::", "192.0.2.7", "stoker.example.org")
        ),
    ],
)
def test_an_exposed_or_contradicting_listener_is_refused(tmp_path, flags, words):
    with pytest.raises(Invalid, match=words) as refused:
        check_exposure(load(tmp_path, **flags))
    assert "\n" not in refused.value.message


def test_these_settings_permit_a_public_listener(tmp_path, authority):
    beyond = {"host": "0.0.0.0"}
    for flags in (
        {**beyond, "tls_cert": authority.chain, "tls_key": authority.key},
        {**beyond, "public_url": "https://stoker.example.org"},
        {**beyond, "insecure_http": "true"},
        {"host": "127.0.0.9"},
        {"host": "localhost"},
        {"host": "::1"},
        {"host": "127.0.0.2", "local_servers_unsafe": "true"},
    ):
        check_exposure(load(tmp_path, **flags))


def test_files_without_a_certificate_are_refused_by_name(tmp_path, authority):
    missing, text = tmp_path / "missing.pem", tmp_path / "text.pem"
    with pytest.raises(Invalid, match=rf"--tls-key {missing}: No such file or directory: {missing}$"):
        Certificate(authority.chain, missing)
    text.write_text("no certificate")
    other = Authority(tmp_path / "other")
    other.issue("127.0.0.1")
    for chain, key in ((missing, authority.key), (text, authority.key), (authority.chain, other.key)):
        with pytest.raises(Invalid, match=rf"--tls-cert {chain} with --tls-key {key}"):
            Certificate(chain, key)
    with pytest.raises(Invalid, match="--tls-ca"):
        read_client_ca(load(tmp_path, tls_ca=text))


def test_the_public_url_has_the_certificates_name(tmp_path, authority):
    certificate = {"tls_cert": authority.chain, "tls_key": authority.key}
    assert load(tmp_path, host="0.0.0.0", **certificate).public_url == "https://localhost:8004"
    other = Authority(tmp_path / "other")
    other.issue("*.example.org", "stoker.example.org")
    certificate = {"tls_cert": other.chain, "tls_key": other.key}
    assert load(tmp_path, host="::", **certificate).public_url == "https://stoker.example.org:8004"


def test_certificate_problems_of_clients_are_reported_at_the_start(tmp_path):
    private = Authority(tmp_path / "private")
    private.issue("stoker.example.org")
    flags = {"tls_cert": private.chain, "tls_key": private.key, "public_url": "https://stoker.example.org"}
    assert "unable to get local issuer certificate" in open_tls(load(tmp_path, **flags)).problem
    tls = open_tls(load(tmp_path, **flags, tls_ca=private.file))
    assert (tls.problem, tls.ca_file.read_bytes()) == (None, private.file.read_bytes())
    client_ca = tls.ca_file.read_text()
    assert "doesn't match" in client_problem(tls.context, "https://elsewhere.example.org", client_ca) or (
        "Hostname mismatch" in client_problem(tls.context, "https://elsewhere.example.org", client_ca)
    )
    # A chain that ends with its root needs no second file; without a root no CA is handed on any more.
    private.issue("stoker.example.org", with_root=True)
    assert open_tls(load(tmp_path, **flags)).problem is None
    assert (tmp_path / "ca.pem").read_bytes() == private.file.read_bytes()
    private.issue("stoker.example.org")
    assert open_tls(load(tmp_path, **flags)).ca_file is None
    assert not (tmp_path / "ca.pem").exists()
