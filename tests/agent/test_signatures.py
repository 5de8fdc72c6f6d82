"""What the server signs the agent verifies; nothing else, nothing older, whatever a store makes of the JSON."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.servers.keys import HMAC, SECTION, sign
from stoker_agent.config import Config, Paths, Unusable, credential
from stoker_agent.signatures import Unverified, Verifier

KEY = "server-1.secret"
DOCUMENT = {"deployments": [{"id": "a", "config": "echo ü", "options": {"x": 1.5, "y": None}}], "os-collect-config": {}}


class Agent:
    """A verifier, and what it refused."""

    def __init__(self, folder: Path, key: str = KEY) -> None:
        self.refused: list[tuple[str, str]] = []
        self.verifier = Verifier(key, folder, lambda source, reason: self.refused.append((source, reason)))

    def take(self, document: Any) -> int:
        revision = self.verifier.revision(document, "request")
        self.verifier.accept(revision)
        return revision


def signed(revision: int = 5, document: Any = DOCUMENT, **more: str) -> dict[str, Any]:
    return sign(document, **{"agent_key": KEY, "server_id": "server-1", **more}, revision=revision)


def test_a_signed_document_is_the_document_and_one_section() -> None:
    document = signed()
    section = document.pop(SECTION)
    assert document == DOCUMENT
    assert sorted(section) == [HMAC, "revision", "server_id"]
    assert KEY.partition(".")[2] not in json.dumps(section)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(document=st.dictionaries(st.text(), JSON, max_size=5), revision=st.integers(1, 2**53))
def test_the_signature_survives_any_json_encoder(tmp_path_factory, document, revision) -> None:
    made = signed(revision, document)
    verifier = Verifier(KEY, tmp_path_factory.getbasetemp() / "nowhere", lambda *_: None)
    for again in (
        json.dumps(made),
        json.dumps(made, ensure_ascii=False, indent=3, sort_keys=True),
        json.dumps(dict(reversed(made.items()))),
    ):
        assert verifier.revision(json.loads(again), "request") == revision


def test_the_signature_survives_the_encoder_of_stokers_queues(tmp_path) -> None:
    made = msgspec.json.decode(msgspec.json.encode(signed()))
    assert Agent(tmp_path).take(json.loads(msgspec.json.encode(made))) == 5


def altered(change: Any) -> dict[str, Any]:
    document = copy.deepcopy(signed())
    change(document)
    return document


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (DOCUMENT, "is not signed"),
        ([DOCUMENT], "is not signed"),
        ({**DOCUMENT, SECTION: "x"}, "is not signed"),
        (signed(server_id="server-2", agent_key="server-2.other"), "another server"),
        (altered(lambda it: it[SECTION].update(server_id=["server-1"])), "another server"),
        (signed(agent_key="server-1.other"), "another key"),
        (altered(lambda it: it["deployments"].append({"id": "b"})), "was altered"),
        (altered(lambda it: it.update(more=1)), "was altered"),
        (altered(lambda it: it[SECTION].update(revision=6)), "was altered"),
        (altered(lambda it: it[SECTION].update(revision=5.0)), "is incomplete"),
        (altered(lambda it: it[SECTION].update(more=1)), "was altered"),
        (altered(lambda it: it[SECTION].update(hmac="0" * 64)), "was altered"),
        (altered(lambda it: it[SECTION].update(hmac="ü")), "was altered"),
        (altered(lambda it: it[SECTION].pop("hmac")), "is incomplete"),
        (altered(lambda it: it[SECTION].update(revision="5")), "is incomplete"),
    ],
)
def test_an_altered_document_is_refused_and_reported(tmp_path, document, reason) -> None:
    agent = Agent(tmp_path)
    with pytest.raises(Unverified, match=reason):
        agent.take(document)
    ((source, said),) = agent.refused
    assert source == "request"
    assert reason in said
    assert not list(tmp_path.iterdir())


def test_an_older_document_is_refused_also_after_a_restart(tmp_path) -> None:
    assert Agent(tmp_path).take(signed(5)) == 5
    agent = Agent(tmp_path)
    assert agent.take(signed(5)) == 5  # the same once more
    with pytest.raises(Unverified, match=r"older \(4\) than the last one accepted \(5\)"):
        agent.take(signed(4))
    assert agent.take(signed(6)) == 6
    other = Agent(tmp_path, "server-2.secret")  # the machine is another server now, whose revisions are its own
    assert other.take(signed(1, server_id="server-2", agent_key="server-2.secret")) == 1


def test_the_document_key_is_kept(tmp_path) -> None:
    paths, file = Paths.of(str(tmp_path / "root")), tmp_path / "key"
    paths.make()
    assert credential(paths, None, None) is None
    with pytest.raises(Unusable, match="is not there"):
        credential(paths, None, file)
    file.write_text("no key\n")
    with pytest.raises(Unusable, match="holds no key"):
        credential(paths, None, file)
    file.write_text(f"{KEY}\n")
    assert credential(paths, None, file) == KEY
    file.unlink()
    assert credential(paths, None, None) == KEY
    assert paths.document_key.stat().st_mode & 0o777 == 0o600
    assert credential(paths, Config("http://x", "server-1", "server-1.enrolled"), None) == "server-1.enrolled"
