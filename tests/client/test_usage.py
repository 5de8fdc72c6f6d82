"""Command lines that are refused before any request, with a complaint in the last line."""

import pytest

TIME = "2031-05-06T07:08:09Z"
#: Words, and a part of the complaint.
REFUSED = [
    ("stack create web -P novalue -t web.yaml", "'novalue' is not NAME=VALUE"),
    ("stack create web", "--template is missing"),
    ("stack create web -t broken.yaml", "go.sh (named by broken.yaml)"),
    ("stack create web -t web.yaml --on-servers", "--on-servers needs --dry-run"),
    ("stack update web", "--template is missing (or --existing"),
    ("stack update web -t web.yaml --clear-parameter x", "--clear-parameter needs --existing"),
    ("stack update web -t web.yaml --on-servers", "--on-servers needs --dry-run"),
    ("stack delete web", "use --yes"),
    ("stack abandon web --output-file gone/left", "cannot write gone/left (named by --output-file): No such file"),
    ("config create x -f web.yaml -i a:nonsense", "'nonsense' is not one of the types"),
    ("config create x -f web.yaml --definition list.yaml", "has the sections"),
    ("config create x -f web.yaml --definition web.yaml", "has the sections"),
    ("config create x -f web.yaml --definition inputs.yaml", "inputs is not a list"),
    ("config create x -f blob", "blob (named by --file) is not UTF-8 text: byte 1 is invalid"),
    ("run web1", "give either a command after -- or a script"),
    ("run web1 -f x -- ls", "give either a command after -- or a script"),
    ("run -- true", "give either servers or --label"),
    ("run web1 --label role=web -- true", "give either servers or --label"),
    ("deployment logs x --since soon", "neither a duration"),
    ("deployment logs x --all --run 1", "give either --all or --run"),
    ("deployment logs x --bytes", "--bytes needs --stream"),
    ("deployment logs x --bytes --stream stdout --tail 3", "permits only --run"),
    ("trigger app", "name a resource: `stoker trigger app RESOURCE`"),
    ("trigger --on x", "give STACK RESOURCE, --config or --deployment"),
    ("trigger app r A B", "unexpected argument 'B' after ACTION"),
    ("trigger app r --config c --on x", "only one of STACK RESOURCE"),
    ("trigger --config c --deployment d --on x", "only one of STACK RESOURCE"),
    ("trigger --config c", "--on or --label"),
    ("trigger app r --on x --label a=b", "either with --on or with --label"),
    ("trigger app r -i x", "'x' is not NAME=VALUE"),
    ("trigger app r --max-concurrent 0", "--max-concurrent"),
    ("schedule create app database", "give either --cron or --at"),
    (f"schedule create app database --at {TIME} --cron *", "give either --cron or --at"),
    ("schedule create --cron *", "give STACK RESOURCE, --config or --deployment"),
    ("schedule set x", "nothing to change"),
    (f"schedule set x --at {TIME} --cron *", "give either --cron or --at"),
    ("server policy db1 --clear --allow STACK", "a file, or options, or --clear"),
    ("server policy db1 --allow STACK --allow stack=x", "excludes other --allow options"),
    ("server policy db1 --allow user=x", "is not STACK"),
    ("server policy db1 --window *", "'CRON; MINUTES'"),
    ("server policy db1 list.yaml", "is not a policy"),
    ("server policy db1 broken", "broken:2:1: did not find"),
    ("server policy db1 gone.yaml", "cannot read gone.yaml"),
    ("server policy db1 list.yaml more", "unexpected argument 'more'"),
    ("server policy", "give either servers or --label"),
    ("server delete", "give either servers or --label"),
    ("server label web1 nothing", "give at least one change"),
    ("server label web1 a=b nothing", "neither NAME=VALUE nor NAME-"),
    ("server label --label pool=bulk a", "neither NAME=VALUE nor NAME-"),
    ("server approve", "give either servers or --all"),
    ("server approve --all web1", "give either servers or --all"),
    ("server upgrade", "give either servers or --label"),
    ("server upgrade web1 -l a=b", "give either servers or --label"),
    *((f"server upgrade web1 --canary={canary}", "--canary is a number") for canary in ("x", "101%", "-1", "0")),
    ("server enroll", "give a NAME, or --many --limit N"),
    ("server enroll --many", "--many needs --limit, the number of machines"),
    ("server enroll --many --limit 3 web1", "a NAME excludes --many"),
    ("server enroll --many --limit 3 --again", "--again excludes --many"),
    ("server enroll web1 --limit 3", "--limit needs --many"),
    ("server enroll web1 --names web*", "--names needs --many"),
    ("server enroll web1 --approve", "--approve needs --many"),
    ("server enroll web1 --name-from hostname", "--name-from needs --many"),
    ("server enroll web1 --rerun", "--rerun needs --again"),
    ("server enroll web1 --expires soon", "'soon' is not a duration"),
    ("server enroll web1 --label role", "'role' is not NAME=VALUE"),
    ("server user-data", "NAME"),
    ("enrollment delete abcd", "not deleted: standard input is not a terminal; use --yes"),
    ("catalog show nginx", "'nginx' is not a name and a version, such as nginx/1"),
    ("catalog add absent.yaml", "absent.yaml"),
    ("catalog delete greet/1", "catalog entry greet/1 not deleted: standard input is not a terminal"),
    ("catalog delete greet/0 --yes", "'greet/0' is not a name and a version"),
    ("hook add shout absent", "absent"),
    ("check", "give one of STACK, --server and --label"),
    ("check shop --server web1", "give one of STACK, --server and --label"),
    ("drift list --state odd", "'odd' is not one of"),
    ("drift repair", "give deployments, --stack or --server, or --all"),
    ("server show web\udcff", r"'web\udcff' is not UTF-8 text"),
    ("user grant ann", "give either --project PROJECT and --role ROLE, or --system"),
]


@pytest.mark.parametrize(("line", "complaint"), REFUSED)
def test_a_wrong_command_line_sends_no_request(stoker, nowhere, monkeypatch, line, complaint):
    """No service listens: a request would end with another code."""
    for name in ("AUTH_URL", "USERNAME", "PASSWORD", "PROJECT_ID"):
        monkeypatch.setenv(f"OS_{name}", "http://127.0.0.1:1/identity/v3")
    (nowhere / "web.yaml").write_text("heat_template_version: 2021-04-16\n")
    (nowhere / "broken.yaml").write_text(
        "heat_template_version: 2021-04-16\noutputs: {o: {value: {get_file: go.sh}}}\n"
    )
    (nowhere / "broken").write_text("{")
    (nowhere / "list.yaml").write_text("[1]")
    (nowhere / "inputs.yaml").write_text("inputs: {a: 1}")
    (nowhere / "blob").write_bytes(b"a\xff")

    result = stoker(*line.split())

    assert (result.code, result.out) == (2, "")
    assert complaint in result.err.splitlines()[-1]
