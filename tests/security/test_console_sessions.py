"""A session of the console: what its cookie opens, for whom, and until when."""

from __future__ import annotations

import re

import pytest

from support.accounts import PASSWORD, Account, create_account, create_project
from support.console import Browser
from support.server import Answer, Served, served

pytestmark = pytest.mark.usefixtures("built_console")


def signed_in(account: Account) -> Browser:
    browser = Browser(account.stoker)
    answer = browser.sign_in(account.name, PASSWORD)
    assert answer.status == 303, answer.raw
    browser.open(account.project)
    return browser


def stacks_of(browser: Browser, project: str, **headers: str) -> Answer:
    return browser.api("GET", f"/v1/{project}/stacks", **headers)


def cookie_attributes(answer: Answer) -> list[str]:
    return [part.strip() for part in answer.headers["set-cookie"].split(";")][1:]


@pytest.fixture
def browser(member) -> Browser:
    return signed_in(member)


def test_the_cookie_is_for_the_console_of_this_site_only(stoker, member):
    browser = Browser(stoker)
    answer = browser.sign_in(member.name, PASSWORD)
    # Without a path, a browser takes that of the sign-in page: the console's, also below the prefix of a proxy.
    assert cookie_attributes(answer) == ["HttpOnly", "SameSite=Strict"]


def test_the_cookie_needs_tls_where_the_site_has_it(tmp_path):
    with served(tmp_path, "--public-url", "https://stoker.example") as site:
        browser = Browser(site)
        assert "Secure" in cookie_attributes(browser.get("sign-in"))
        answer = browser.sign_in("admin", site.environment["OS_PASSWORD"])
        assert answer.status == 303
        assert "Secure" in cookie_attributes(answer)


def test_no_page_contains_a_token(browser, member):
    page = browser.get(f"p/{member.project}/").raw.decode()
    for text in (page, *browser.cookies.values()):
        for token in re.findall(r"[0-9a-f]{64}", text):
            answer = member.stoker.request("GET", f"/v1/{member.project}/stacks", headers={"X-Auth-Token": token})
            assert answer.status == 401
    assert re.findall(r"[0-9a-f]{64}", page) == [browser.csrf]


@pytest.mark.parametrize("verb", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_no_method_works_without_the_csrf_token(browser, member, verb):
    path = f"/v1/{member.project}/software_configs/absent"
    assert browser.api(verb, path).status in (404, 405)
    for header in ("", "0" * 64, "\u00e9"):
        assert browser.api(verb, path, **{"X-Stoker-CSRF": header}).status in (401, 405)


def test_only_the_cookie_and_its_csrf_token_open_the_api_of_the_console(browser, member):
    other = signed_in(member)
    for headers in ({"X-Stoker-CSRF": other.csrf}, {"X-Stoker-CSRF": "", "X-Auth-Token": member.token}):
        assert stacks_of(browser, member.project, **headers).status == 401
    headers = {**browser.headers, "X-Stoker-CSRF": browser.csrf}
    assert member.stoker.request("GET", f"/v1/{member.project}/stacks", headers=headers).status == 401


def test_a_changed_cookie_is_no_session(browser, member):
    value = browser.cookies["stoker-console"]
    for changed in (value[:-8] + "AAAAAAA=", value[::-1], "", "x" * 9000, '"'):
        browser.cookies["stoker-console"] = changed
        assert stacks_of(browser, member.project).status == 401
        assert browser.get(f"p/{member.project}/").status == 303


def test_a_foreign_project_is_refused(browser, stranger):
    assert stacks_of(browser, stranger.project).status == 403
    answer = browser.get(f"p/{stranger.project}/")
    assert answer.status == 403
    assert stranger.project.encode() not in answer.raw


def test_two_projects_in_one_session_do_not_mix(stoker, member):
    name, second = "only-in-the-first", create_project(stoker)
    browser = Browser(stoker)
    browser.sign_in("admin", stoker.environment["OS_PASSWORD"])
    stoker.run("user", "grant", "admin", "--project", second, "--role", "member")
    browser.open(second)
    browser.open(stoker.project)  # the newest tab is in the first project
    created = browser.api("POST", f"/v1/{stoker.project}/software_configs", {"name": name})
    assert created.status == 200, created.raw
    for project, is_there in ((stoker.project, True), (second, False)):
        listed = browser.api("GET", f"/v1/{project}/software_configs")
        assert (name in [config["name"] for config in listed.body["software_configs"]]) == is_there


def test_paths_without_a_project_use_that_of_a_header(stoker, member):
    administrator, project = Browser(stoker), {"X-Stoker-Project": stoker.project}
    administrator.sign_in("admin", stoker.environment["OS_PASSWORD"])
    assert administrator.open(stoker.project)["is_admin"] is True
    browser = signed_in(member)
    assert browser.open(member.project)["is_admin"] is False
    for path in ("/identity/v3/users", "/metrics"):
        assert administrator.api("GET", path, **project).status == 200
        assert administrator.api("GET", path, **project, **{"X-Stoker-CSRF": ""}).status == 401
        assert browser.api("GET", path, **project).status == 403
    own = f"/identity/v3/users/{member.user_id}/application_credentials"
    body = {"application_credential": {"name": "a program"}}
    created = browser.api("POST", own, body, **{"X-Stoker-Project": member.project})
    assert created.body["application_credential"]["project_id"] == member.project
    # nothing that a script of the page sends is answered with a token
    assert administrator.api("POST", "/identity/v3/auth/tokens", {}, **project).status == 404
    assert administrator.api("GET", "/identity/v3/auth/tokens", **project).status == 404


def test_a_reader_reads_and_changes_nothing(reader):
    browser = signed_in(reader)
    assert browser.open(reader.project)["can_write"] is False
    assert stacks_of(browser, reader.project).status == 200
    assert browser.api("POST", f"/v1/{reader.project}/software_configs", {"name": "a"}).status == 403


def test_a_sign_out_ends_the_session_for_every_copy_of_the_cookie(browser, member):
    copy = Browser(member.stoker, dict(browser.cookies), browser.csrf)
    assert browser.post("sign-out", {"csrf": "wrong"}).status == 401
    assert stacks_of(browser, member.project).status == 200
    answer = browser.post("sign-out", {"csrf": browser.csrf})
    assert (answer.status, answer.headers["location"]) == (303, "sign-in")
    assert "Max-Age=0" in cookie_attributes(answer)
    assert stacks_of(copy, member.project).status == 401
    assert copy.get(f"p/{member.project}/").status == 303


def test_a_disabled_user_has_no_session(stoker):
    account = create_account(stoker, "member")
    browser = signed_in(account)
    assert stoker.identity("PATCH", f"/users/{account.user_id}", {"user": {"enabled": False}}).status == 200
    assert stacks_of(browser, account.project).status == 401
    assert browser.get("").headers["location"] == "sign-in"


def test_a_window_whose_session_has_ended_signs_in_again(browser, member):
    browser.post("sign-out", {"csrf": browser.csrf})
    other = signed_in(member)
    form = {"name": member.name, "password": PASSWORD}
    assert other.post("sign-in", form, **{"X-Stoker-CSRF": "wrong"}).status == 401
    answer = other.post("sign-in", form, **{"X-Stoker-CSRF": other.csrf})
    assert answer.status == 200
    other.csrf = answer.body["csrf"]
    assert stacks_of(other, member.project).status == 200


def test_another_site_cannot_sign_a_browser_in(stoker, member):
    attacker, victim = Browser(stoker), Browser(stoker)
    form = {"csrf": attacker.form_token(), "name": member.name, "password": PASSWORD}
    for browser in (victim, Browser(stoker, {"stoker-console-login": ""})):
        assert browser.post("sign-in", form).status == 400
        assert "stoker-console" not in browser.cookies


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("p/abc/servers?status=ONLINE", "p/abc/servers?status=ONLINE"),
        ("https://evil.example/", "./"),
        ("//evil.example/", "./"),
        ("/v1", "./"),
        ("javascript:alert(1)", "./"),
        ("p/\r\nSet-Cookie: a=b", "./"),
        ("p/\\evil", "./"),
        ("", "./"),
    ],
)
def test_a_sign_in_leads_into_the_console_only(stoker, member, target, location):
    answer = Browser(stoker).sign_in(member.name, PASSWORD, target)
    assert (answer.status, answer.headers["location"]) == (303, location)


def test_failed_logins_are_limited_and_recorded(tmp_path):
    with served(tmp_path) as site:
        browser = Browser(site)
        name = '<b>"nobody"</b>'
        answers = [browser.sign_in(name, "wrong") for _ in range(6)]
        assert [answer.status for answer in answers] == [401] * 5 + [429]
        assert name.encode() not in answers[0].raw
        assert "set-cookie" in answers[0].headers
        assert "stoker-console" not in browser.cookies
        refused = [entry["actor"] for entry in read_site_audit(site) if entry["outcome"] == "REFUSED"]
        assert refused[:1] == [name]


def test_a_link_of_another_site_keeps_the_session(browser, member):
    """Browsers send the cookie only with a request that a page of this site begins."""
    path = f"p/{member.project}/servers?name=a%22b&status=ONLINE"
    answer = Browser(member.stoker).get(path, **{"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200
    assert b'content="0; url=./servers?name=a%22b&amp;status=ONLINE"' in answer.raw
    assert browser.get(path, **{"Sec-Fetch-Site": "same-origin"}).status == 200


def script_of(page: Answer) -> str:
    """The path of the script of a page, below the console's."""
    match = re.search(rb'src="../../(assets/[^"]*\.js)"', page.raw)
    assert match is not None
    return match[1].decode()


def test_pages_and_files_have_a_strict_content_policy(browser, member):
    pages = [browser.get(path) for path in ("sign-in", "", f"p/{member.project}/")]
    for answer in (*pages, browser.get(script_of(pages[-1]))):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "trusted-types 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert all(answer.headers["cache-control"] == "no-store" for answer in pages)


def test_files_are_cached_for_ever_and_compressed(browser, member):
    path, sizes = script_of(browser.get(f"p/{member.project}/")), []
    for accepted, coding in (("gzip, deflate, br", "br"), ("gzip", "gzip"), ("identity", None)):
        answer = browser.get(path, **{"Accept-Encoding": accepted})
        assert (answer.status, answer.headers.get("content-encoding")) == (200, coding)
        assert "immutable" in answer.headers["cache-control"]
        sizes.append(len(answer.raw))
    assert sizes == sorted(sizes)
    assert sizes[1] < 70_000
    for absent in ("assets/absent.js", "assets/..%2f..%2findex.html"):
        assert browser.get(absent).status == 404


def code_of(account: Account) -> str:
    return str(account.create("console_codes")["code"])


def enter(browser: Browser, code: str, csrf: str = "") -> Answer:
    """Do what the script of the page does."""
    return browser.post("enter", {"code": code, "csrf": csrf or enter_token(browser)})


def enter_token(browser: Browser) -> str:
    match = re.search(rb'name="stoker-csrf" content="(\w+)"', browser.get("enter").raw)
    assert match is not None
    return match[1].decode()


@pytest.mark.parametrize("account", ["member", "reader"])
def test_a_one_time_code_signs_in_once_and_is_in_no_log_and_no_url(stoker, account, request):
    user = request.getfixturevalue(account)
    code, browser = code_of(user), Browser(stoker)
    answer = enter(browser, code)
    assert (answer.status, answer.body) == (200, {"next": f"p/{user.project}/"})
    assert cookie_attributes(answer) == ["HttpOnly", "SameSite=Strict"]
    browser.open(user.project)
    assert stacks_of(browser, user.project).status == 200
    for again in (Browser(stoker), browser):
        assert enter(again, code).status == 401
    assert code not in stoker.output
    page = Browser(stoker).get(f"enter?code={code}")
    assert page.headers["referrer-policy"] == "no-referrer"
    assert code.encode() not in page.raw


def test_sessions_and_used_codes_are_known_to_every_process_of_the_site(stoker, browser, member):
    """The cookie holds the token, encrypted with a key of the site: after a restart, the session goes on."""
    code = code_of(member)
    assert enter(Browser(stoker), code).status == 200
    stoker.stop()
    stoker.restart()
    assert stacks_of(browser, member.project).status == 200
    assert enter(Browser(stoker), code).status == 401
    reasons = [entry["reason"] for entry in read_site_audit(stoker) if entry["actor"] == member.name]
    assert any("one-time code was used before" in reason for reason in reasons)


def read_site_audit(stoker: Served) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = stoker.heat("GET", "/audit/site").body["audit"]
    return entries


def test_altered_codes_cookies_and_codes_of_an_ended_token_are_no_codes(stoker, member):
    browser, account = signed_in(member), create_account(stoker, "member")
    code, ended = code_of(member), code_of(account)
    assert stoker.identity("DELETE", "/auth/tokens", subject=account.token).status == 204
    altered = ("", "x", "é", code[:-6] + "AAAAA=", code[::-1])
    for wrong in (*altered, browser.cookies["stoker-console"], member.token, ended):
        assert enter(Browser(stoker), wrong).status == 401
    browser.cookies["stoker-console"] = code
    assert stacks_of(browser, member.project).status == 401


def test_another_site_cannot_sign_a_browser_in_with_a_code(stoker, member):
    victim = Browser(stoker)
    assert enter(victim, code_of(member), enter_token(Browser(stoker))).status == 401
    page = victim.get("enter", **{"Sec-Fetch-Site": "cross-site"})
    assert b"<script" not in page.raw
    assert b"stoker-csrf" not in page.raw


def test_a_code_of_another_user_takes_no_window_over(stoker, member, reader):
    browser, code = signed_in(member), code_of(reader)
    refused = enter(browser, code)
    assert refused.status == 409
    assert member.name.encode() in refused.raw
    browser.post("sign-out", {"csrf": browser.csrf})
    assert enter(browser, code).status == 200  # the refusal has not used the code
