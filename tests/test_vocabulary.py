"""Names keep to the project's vocabulary (docs/glossary.md)."""

from __future__ import annotations

import re
from pathlib import Path

from support.source_code import sources

#: Module names end with a noun. These are nouns although they look like gerunds.
NOUNS = {"messaging", "publishing", "polling", "tracking", "string"}
#: Words of an earlier vocabulary, which says other things to readers than it means.
RETIRED = {
    *("anew", "bell", "door", "doors", "ear", "face", "faces", "foresight", "hand", "hands", "heard", "house"),
    *(
        "leftover",
        "leftovers",
        "lodging",
        "lodgings",
        "looks",
        "nobody",
        "nobodys",
        "party",
        "parties",
        "peer",
        "peers",
    ),
    *("rooms", "told", "whoever", "withheld"),
}


#: Past participles that do not say what a variable is.
PARTICIPLES = {"found", "given", "held", "known", "made", "said", "told"}


def words(name: str) -> list[str]:
    return [word.lower() for part in name.split("_") for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", part)]


def test_modules_are_named_by_nouns():
    paths = [module.path for module in sources()]
    names = {path: path.parent.name if path.stem == "__init__" else path.stem for path in paths}
    assert len(names) > 500
    gerunds = {str(path) for path, name in names.items() if name.endswith("ing") and words(name)[-1] not in NOUNS}
    assert gerunds == set()


def test_no_name_has_a_retired_word():
    names = [(module.path, line, name) for module in sources() for line, name in module.names]
    assert len(names) > 10_000
    retired = {name for name in {name for _, _, name in names} if RETIRED & set(words(name))}
    assert [entry for entry in names if entry[2] in retired] == []
    assert [module.path for module in sources() if RETIRED & set(words(module.path.stem))] == []


def test_variables_are_nouns():
    names = [(module.path, line, name) for module in sources() for line, name in module.names]
    assert [entry for entry in names if entry[2] in PARTICIPLES] == []


def test_names_of_tests_are_statements():
    """A name states a behavior; a relative clause such as ``what_is_wrong_…`` hides its subject."""
    names = [
        name
        for path in Path(__file__).parent.rglob("test_*.py")
        for name in re.findall(r"^ *(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE)
    ]
    assert len(names) > 1500
    wrong = [name for name in names if RETIRED & set(words(name)) or words(name)[1] in {"what", "who", "where"}]
    assert wrong == []
