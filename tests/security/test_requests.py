"""Attacks by the size and number of requests: bodies, templates, lists."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest

from support.availability import assert_harmless
from support.raw import connect, read_answer, send_all
from support.templates import define

TEMPLATE = {"heat_template_version": "2018-08-31"}
MIB = 1024 * 1024


@pytest.mark.parametrize(
    "value",
    [
        pytest.param('{"heat_template_version":"2018-08-31","x":[' + "[]," * 5_000_000 + "[]]}", id="more"),
        pytest.param('{"heat_template_version":"2018-08-31","x":[' + "[]," * 1_390_000 + "[]]}", id="lists"),
        pytest.param('{"heat_template_version":"2018-08-31","x":[' + "1," * 2_090_000 + "1]}", id="numbers"),
        pytest.param('{"heat_template_version":"2018-08-31","x":[' + '{"a":{"b":1}},' * 298_000 + "1]}", id="maps"),
    ],
)
@pytest.mark.parametrize("part", ["template", "environment", "parameters"])
def test_json_of_four_megabytes_and_more_is_refused_at_once(stoker, reader, part, value):
    body = b'{"stack_name":"x","%s":%s}' % (part.encode(), value.encode())

    def attack():
        for path in ("/validate", "/stacks/preview"):
            answer = reader.heat("POST", path, body)
            assert answer.status == 400
            assert "limit exceeded" in answer.body["error"]["message"]

    assert_harmless(stoker, attack)


def test_templates_in_json_and_text_have_the_same_limit(stoker, reader):
    for size, status in ((500_000, 200), (525_000, 400)):
        resource = define("OS::Heat::Value", value=1) | {"metadata": {"x": "y" * size}}
        template = {**TEMPLATE, "resources": {"a": resource}}
        for form in (template, json.dumps(template)):
            answer = reader.heat("POST", "/validate", {"template": form})
            assert answer.status == status, answer.raw[:300]
            if status == 400:
                assert "exceeds maximum allowed size (524288 bytes)" in answer.body["error"]["message"]


@pytest.mark.parametrize("backslashes", ["", r"\\"])
def test_hundreds_of_thousands_of_files_are_refused(stoker, reader, backslashes):
    """Texts that end in backslashes must not look like fewer texts."""
    files = ",".join(f'"{number:x}{backslashes}":""' for number in range(250_000))
    body = b'{"stack_name":"x","template":{},"files":{%s}}' % files.encode()

    def attack():
        answer = reader.heat("POST", "/validate", body)
        assert (answer.status, "10000 texts" in answer.body["error"]["message"]) == (400, True)

    assert_harmless(stoker, attack)


def test_large_files_are_accepted(stoker, reader):
    """What the limits are not for."""
    text = json.dumps({f"key {number}": [1, 2, {"a": "b"}] for number in range(40_000)})
    template = {**TEMPLATE, "resources": {"a": define("OS::Heat::Value", value=1)}}
    files = {f"file-{number}": text for number in range(2)}
    answer = reader.heat("POST", "/validate", {"template": template, "files": files})
    assert answer.status == 200, answer.raw[:300]


def test_concurrent_templates_of_one_project_are_bounded(stoker, reader, stranger):
    """A queue that is full answers 429; another project's template gets its turn meanwhile."""
    resources = {f"r{n}": define("OS::Heat::Value", value=n) for n in range(900)}
    body = json.dumps({"stack_name": "x", "template": {**TEMPLATE, "resources": resources}}).encode()
    small = {"template": {**TEMPLATE, "resources": {"a": define("OS::Heat::Value", value=1)}}}
    answers, others = [], []

    def attack():
        with ThreadPoolExecutor(30) as pool:
            tries = [pool.submit(reader.heat, "POST", "/stacks/preview", body) for _ in range(30)]
            others.append(stranger.heat("POST", "/validate", small).status)
            answers.extend(each.result() for each in tries)

    assert_harmless(stoker, attack)
    assert set(others) == {200}
    assert {answer.status for answer in answers} <= {200, 429}
    for refused in (answer for answer in answers if answer.status == 429):
        assert int(refused.headers["Retry-After"]) > 0
        assert refused.body["code"] == 429


def test_unfinished_bodies_are_bounded(stoker, reader):
    """Many large bodies that never end, of a reader and of nobody."""
    heads = [
        b"POST /v1/%s/validate HTTP/1.1\r\nX-Auth-Token: %s\r\nContent-Length: 16000000\r\n\r\n"
        % (reader.project.encode(), reader.token.encode()),
        b"POST /identity/v3/auth/tokens HTTP/1.1\r\nContent-Length: 65000\r\n\r\n",
        b"POST /agent/v1/enroll HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n",
        b"POST /cfn/v1 HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 15000000\r\n\r\n",
    ]

    def attack():
        with ExitStack() as stack:
            for head in heads:
                for _ in range(20):
                    connection = stack.enter_context(connect(stoker))
                    connection.settimeout(0.5)
                    with suppress(TimeoutError):
                        send_all(connection, head, *[b"x=" + b"y" * 65534] * 100)

    assert_harmless(stoker, attack)


def test_a_long_list_is_sent_in_pieces(stoker, member):
    """20 MB of deployments, three times at once, to a client that does not read at first."""
    config = member.create("software_configs", group="script")["id"]
    body = {"config_id": config, "server_id": "long-list", "input_values": {"x": "y" * (MIB // 4)}}
    for _ in range(300):  # after many small ones, a page must not be as many large ones
        member.create("software_deployments", **{**body, "input_values": {}})
    made = [member.create("software_deployments", **body)["id"] for _ in range(80)]
    lines = f"GET /v1/{member.project}/software_deployments HTTP/1.1\r\nX-Auth-Token: {member.token}\r\n"

    def attack():
        with ExitStack() as stack:
            connections = [stack.enter_context(connect(stoker)) for _ in range(3)]
            for connection in connections:
                connection.sendall(f"{lines}Connection: close\r\n\r\n".encode())
            for connection in connections:
                received = sum(map(len, iter(lambda c=connection: c.recv(MIB), b"")))
                assert received > 20 * 1000 * 1000

    assert_harmless(stoker, attack)
    listed = member.heat("GET", "/software_deployments").body["software_deployments"]
    assert [each["id"] for each in listed if each["id"] in made] == made
    for id in made:
        assert member.heat("DELETE", f"/software_deployments/{id}").status == 204


def test_a_refused_body_releases_its_budget(stoker, reader):
    """Else the next ones would be refused for ever."""
    for _ in range(80):
        with connect(stoker) as connection:
            send_all(
                connection, b"POST /identity/v3/auth/tokens HTTP/1.1\r\nContent-Length: 200000\r\n\r\n", b"y" * 200_000
            )
            assert read_answer(connection).status == 400
    assert stoker.login().status == 201
