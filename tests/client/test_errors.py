"""What users are told when something goes wrong: one line, a way out, an exit code, never a traceback."""

import signal

import pytest

from client.site import EMPTY
from stoker_client import faults
from stoker_client.cli.main import main
from support.http_stub import Said
from support.ports import free_port


@pytest.mark.parametrize(
    ("variable", "value", "code", "messages"),
    [
        ("PASSWORD", "wrong", 5, ("stoker: {url} does not accept this login: ", "`stoker env`")),
        (
            "AUTH_URL",
            "{url}/elsewhere",
            1,
            ("stoker: {url} does not answer like an identity service: check OS_AUTH_URL or the entry's auth_url\n",),
        ),
        (
            "AUTH_URL",
            "{nowhere}/identity/v3",
            6,
            (
                "stoker: cannot reach {nowhere}: Connection refused; "
                "start it with `stoker serve`, or choose another cloud with OS_CLOUD\n",
            ),
        ),
        ("REGION_NAME", "Elsewhere", 1, ("has no orchestration service",)),
    ],
)
def test_a_wrong_setting_is_a_one_line_error(site, stoker, monkeypatch, variable, value, code, messages):
    urls = {"url": site.url, "nowhere": f"http://127.0.0.1:{free_port()}"}
    monkeypatch.setenv(f"OS_{variable}", value.format(**urls))

    result = stoker("stack", "list")

    assert (result.code, result.err.count("\n")) == (code, 1)
    for message in messages:
        assert message.format(**urls) in result.err


@pytest.mark.parametrize(
    ("noun", "sentence"),
    [
        ("stack", "The Stack (nope) could not be found"),
        ("server", "The Server (nope) could not be found"),
        *((noun, f"there is no {noun} 'nope'") for noun in ("config", "trigger", "deployment", "schedule")),
    ],
)
def test_not_found_says_where_to_look(site, stoker, noun, sentence):
    result = stoker(noun, "show", "nope")

    assert (result.code, result.err) == (4, f"stoker: {sentence}; `stoker {noun} list` lists them\n")


@pytest.mark.parametrize(("status", "code"), [(400, 5), (403, 5), (409, 5), (500, 1), (503, 6)])
def test_heats_error_message_is_printed(site, stoker, status, code):
    body = {"code": status, "error": {"message": "web.yaml:3: bad property", "type": "X"}}
    site.replace("GET", "/stacks", Said(status, body, {"Content-Type": "application/json"}))

    result = stoker("stack", "list")

    assert result.code == code
    assert "web.yaml:3: bad property" in result.err


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"<html>hello</html>", "text/html"), (b"{broken", "application/json"), (b"[]", "application/json")],
)
def test_an_answer_that_is_not_sites_is_an_error(site, stoker, content, kind):
    site.replace("GET", "/stacks", Said(200, content, {"Content-Type": kind}))

    result = stoker("stack", "list")

    assert result.code == 1
    assert result.err.startswith("stoker: ")
    assert "unexpected" not in result.err


def test_names_are_escaped_in_paths_and_are_not_empty(site, stoker):
    assert stoker("stack", "show", "").err == "stoker: a name or id is missing: it is empty\n"
    assert stoker("stack", "show", "..").err == "stoker: '..' is neither a name nor an id\n"
    assert [call for call in site.calls if "stacks" in call[1]] == []
    assert stoker("server", "show", "../stacks?x=1#y").code == 2
    assert site.calls[-1][1] == "/servers/..%2Fstacks%3Fx%3D1%23y"


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"error": "text"}', '{"error": {"message": null}}', "null"])
def test_any_error_body_is_a_one_line_error(text):
    assert isinstance(faults.body_message(text), str)


def test_an_unexpected_error_is_one_line_and_debug_prints_the_traceback(stoker, monkeypatch):
    problems = [RuntimeError("first\nsecond"), RuntimeError(), KeyboardInterrupt()]

    def broken(**_: object) -> None:
        raise problems.pop(0)

    monkeypatch.setattr("stoker_client.clouds.OpenStackConfig", broken)

    plain, debug, interrupted = stoker("stack", "list"), stoker("--debug", "stack", "list"), stoker("stack", "list")

    assert (plain.code, debug.code, interrupted.code) == (1, 1, 130)
    assert plain.err == "stoker: unexpected RuntimeError: first second (`stoker --debug …` shows where)\n"
    assert "Traceback" in debug.err


def test_a_closed_pipe_is_quiet(spawn):
    code = (
        "import sys, click\n"
        "from stoker_client.cli.main import main, stoker\n"
        "stoker.add_command(click.Command('flood', callback=lambda: [click.echo('x' * 1000) for _ in range(10000)]))\n"
        "sys.exit(main(['flood']))"
    )
    process = spawn("-c", code)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None

    assert process.stderr.read() == ""
    assert process.wait(timeout=60) in (1, -signal.SIGPIPE)


def test_control_characters_in_errors_are_escaped(site, spawn, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    monkeypatch.setenv("PYTHONUTF8", "0")
    site.create_stack("web", f"{EMPTY}outputs: {{k: {{value: plain ✔}}}}")

    out, err = spawn("-m", "stoker_client.cli.main", "stack", "outputs", "web", "k").communicate(timeout=60)

    assert (out, err) == ("plain \\u2714\n", "")


def test_no_arguments_show_the_help(stoker, capsys):
    assert main([]) == 2
    assert "Usage: stoker" in capsys.readouterr().err
