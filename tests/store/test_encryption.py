"""Columns with secrets are encrypted, and tell whoever reads them what is secret in them."""

from __future__ import annotations

from contextlib import closing

import pytest
from cryptography.fernet import Fernet

from stoker.model.config import Config
from stoker.model.errors import Unavailable
from stoker.model.secrets import CREDENTIAL_PREFIX, SecretSet
from stoker.store import configs, maintenance
from stoker.store.encryption import derive_key
from stoker.store.open import Store
from stoker.store.rows import ENCRYPTED
from support import databases, query
from support.deployments import begin
from support.statements import recorded_statements

SECRET = "S3CR3T-of-a-test"


def plain(store, column="body"):
    with store.read() as tx:
        return query.column(tx, f"SELECT {column} FROM configs ORDER BY seq")


def config(store, id, **more):
    def do(tx):
        said = {"id": id, "project_id": "p", "config": "x", "created_at": tx.now, **more}
        configs.add(tx, Config(**said))

    store.write(do)


def secret_input(value=SECRET):
    return ({"name": "a", "type": "String", "secret": True, "value": value},)


def test_columns_without_a_secret_stay_plain_even_in_the_form_of_an_encrypted_text(store):
    config(store, "open", inputs=({"name": "a", "type": "String", "value": "plain"},))
    assert not plain(store)[0].startswith(ENCRYPTED)

    config(store, "one", config="gAAAAAx")
    with store.read() as tx:
        assert configs.get(tx, "one", "p").config == "gAAAAAx"


def test_a_secret_that_was_read_is_encrypted_in_every_copy(store):
    config(store, "one", inputs=secret_input())
    assert plain(store)[0].startswith(ENCRYPTED)
    with store.read() as tx:
        assert configs.get(tx, "one", "p").inputs[0]["value"] == SECRET
        assert list(tx.secrets.texts) == [SECRET]
        assert tx.secrets.redact({"a": SECRET, "b": [f"<{SECRET}>"], "c": 1, "d": None}) == {
            "a": "******",
            "b": ["<******>"],
            "c": 1,
            "d": None,
        }

    def copy(tx):
        configs.get(tx, "one", "p")
        configs.add(tx, Config(id="two", project_id="p", config=f"echo {SECRET}", created_at=tx.now))

    store.write(copy)
    assert plain(store)[1].startswith(ENCRYPTED)
    with store.read() as tx:
        assert configs.get(tx, "two", "p").config == f"echo {SECRET}"
        assert list(tx.secrets.texts) == [SECRET], "also of a copy"


def test_a_config_comes_with_the_secrets_on_its_server_that_its_run_may_show(store):
    def run_twice(tx):
        for id, inputs in (("two", secret_input("the second")), ("three", ())):
            new = Config(id=id, project_id="p", config="x", created_at=tx.now, inputs=inputs)
            configs.add(tx, new, server_id="s", shows_present=True)

    begin(store, "one", inputs=secret_input("the first"))
    with recorded_statements(store) as executed:
        store.write(run_twice)
    with store.read() as tx:
        configs.get(tx, "three", "p")
        assert set(tx.secrets.texts) == {"the first", "the second"}
    assert sum(statement.lstrip().startswith("SELECT") for statement in executed) == 1, "read once for all runs"


@pytest.mark.parametrize("text", ['with "quotes"', "two\nlines of it", "Ünïcode", "back\\slash"])
def test_a_secret_escaped_in_json_is_encrypted(store, text):
    def do(tx):
        tx.secrets.learn([text])
        configs.add(tx, Config(id="one", project_id="p", config={"inside": f"<{text}>"}, created_at=tx.now))

    store.write(do)
    assert plain(store)[0].startswith(ENCRYPTED)


def test_a_short_secret_is_encrypted_only_as_a_whole_value(store):
    def do(tx):
        tx.secrets.learn(["abc"])
        configs.add(tx, Config(id="one", project_id="p", config="abcdef", created_at=tx.now))
        configs.add(tx, Config(id="two", project_id="p", config="abc", created_at=tx.now))

    store.write(do)
    assert [each.startswith(ENCRYPTED) for each in plain(store)] == [False, True]


def test_without_the_key_a_secret_is_neither_read_nor_written(store):
    config(store, "one", inputs=secret_input())
    for keys in ((), (derive_key(b"another site's"),)):
        refuses = pytest.raises(Unavailable, match="give the site's secret_key")
        with closing(Store(store.url, keys=lambda keys=keys: keys)) as other, other.read() as tx, refuses:
            configs.get(tx, "one", "p")
    with closing(Store(store.url)) as other:
        with pytest.raises(Unavailable):
            config(other, "two", inputs=secret_input())
        config(other, "three")
    assert len(plain(store)) == 2


def test_keys_are_rotated_while_other_processes_serve(store):
    keys = [*databases.keys()]
    with closing(Store(store.url, keys=lambda: tuple(keys))) as serving:
        for number in range(5):
            config(serving, str(number), inputs=secret_input(f"{SECRET}-{number}"))
        old = plain(store)
        keys.insert(0, Fernet.generate_key())
        with closing(Store(store.url, keys=lambda: tuple(keys))) as rotating:
            assert maintenance.rotate_keys(rotating, batch=2) == 5
            assert maintenance.rotate_keys(rotating, batch=2) == 0
        assert not set(old) & set(plain(store))
        with serving.read() as tx:  # has not heard of the new key yet
            assert configs.get(tx, "3", "p").inputs[0]["value"] == f"{SECRET}-3"
    del keys[1:]
    with pytest.raises(Unavailable), store.read() as tx:
        configs.get(tx, "3", "p")
    with closing(Store(store.url, keys=lambda: tuple(keys))) as fresh, fresh.read() as tx:
        assert configs.get(tx, "4", "p").inputs[0]["value"] == f"{SECRET}-4"


def test_an_interrupted_rotation_continues(store, monkeypatch):
    for number in range(4):
        config(store, str(number), inputs=secret_input())
    keys = (Fernet.generate_key(), *databases.keys())
    with closing(Store(store.url, keys=lambda: keys)) as rotating:
        done, real = [], rotating.write

        def fails_later(do):
            if done:
                raise KeyboardInterrupt
            done.append(1)
            return real(do)

        monkeypatch.setattr(rotating, "write", fails_later)
        with pytest.raises(KeyboardInterrupt):
            maintenance.rotate_keys(rotating, batch=2)
        monkeypatch.undo()
        assert maintenance.rotate_keys(rotating, batch=2) == 2


def derived(number):
    return f"{CREDENTIAL_PREFIX}{number:032x}"


@pytest.mark.parametrize(
    ("texts", "value", "redacted"),
    [
        (
            ["S3CR3T", "S3CR3T-longer"],
            {"S3CR3T": "a S3CR3T-longer b S3CR3T", "n": 1},
            {"******": "a ****** b ******", "n": 1},
        ),
        (["abc", "12345"], ["abc", "xabc", 12345, 123456, True], ["******", "xabc", "******", "******", True]),
        (['a "quoted" one', "one line\nanother line"], 'a \\"quoted\\" one, another line', "******, ******"),
        (
            [derived(1), derived(2)],
            f"login {derived(2)}, {derived(3)}, {derived(1)}0",
            f"login ******, {derived(3)}, ******0",
        ),
    ],
)
def test_redaction_replaces_each_form_of_a_secret(texts, value, redacted):
    assert SecretSet(texts).redact(value) == redacted


class CountingText(str):
    """A text that counts the searches in it."""

    searches = 0

    def __contains__(self, part):
        self.searches += 1
        return super().__contains__(part)


def test_a_text_is_not_searched_for_each_derived_credential(store):
    """A stack of many deployments learns one for each of them."""
    with store.read() as tx:
        tx.secrets.learn(map(derived, range(500)))
        text = CountingText(f'{{"password":"{derived(499)}"}}')
        assert tx.secrets.within(text) == [derived(499)]
        assert tx.secrets.redact(text) == '{"password":"******"}'
    assert text.searches < 10
