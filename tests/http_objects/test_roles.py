"""Who only reads learns no key that would let them write."""

from __future__ import annotations

from support.accounts import create_account


def test_temporary_url_keys_are_shown_only_to_writers(stoker, swift):
    reader = create_account(stoker, "reader").token
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="hidden")
    path = swift.container(X_Container_Meta_Temp_URL_Key="hidden", X_Container_Meta_Shown="yes")
    for below in ("", path):
        kind = "Container" if below else "Account"
        for verb in ("HEAD", "GET"):
            assert swift(verb, below).headers[f"X-{kind}-Meta-Temp-URL-Key"] == "hidden"
            assert f"X-{kind}-Meta-Temp-URL-Key" not in swift(verb, below, token=reader).headers
    assert swift("HEAD", path, token=reader).headers["X-Container-Meta-Shown"] == "yes"
    swift("POST", "", b"", X_Account_Meta_Temp_URL_Key="")
