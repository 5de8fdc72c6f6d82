"""The documentation: links lead to pages, quoted errors are those of the code, terms name packages that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from stoker_client.cli._session import MEANINGS
from support.source_code import ANY, sources

_ROOT = Path(__file__).parents[1]
_DECISIONS = _ROOT / "docs" / "decisions"
_DEVELOP = _ROOT / "docs" / "develop"
_PAGES = sorted(
    [*_ROOT.glob("*.md"), *_ROOT.joinpath("docs").glob("*.md"), *_DEVELOP.glob("*.md"), *_DECISIONS.glob("*.md")]
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def _texts() -> list[str]:
    """Every text of the code; what is put in at run time is an ellipsis."""
    packages = ("stoker", "stoker_agent", "stoker_client", "stoker_relay")
    return [re.sub(r"%(\.\d+)?[a-z]", ANY, text) for module in sources(*packages) for text in module.texts]


def _is_in_code(message: str) -> bool:
    parts = [part for part in message.split(ANY) if part]
    pattern = re.compile(".*".join(re.escape(part) for part in parts), re.DOTALL)
    return any(parts[0] in text and pattern.search(text) for text in _texts())


def _quoted_messages() -> list[str]:
    text = _ROOT.joinpath("docs", "operations.md").read_text().partition("\n## Troubleshooting")[2]
    return re.findall(r"^\| (?:\d+ )?`([^`]+)` \|", text, re.MULTILINE)


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_links_lead_to_pages_and_headings(page):
    broken = []
    for link in _LINK.findall(page.read_text()):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: page.name)
def test_every_fence_is_closed(page):
    fences = re.findall(r"^ *(```+)(.*)$", page.read_text(), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert [language for _, language in fences[1::2] if language] == []


def test_no_text_installs_a_package_by_a_name_that_others_may_own():
    """Only folders, files and requirements are installed: whoever registers ``stoker`` would own the sites."""
    texts = [*(page.read_text() for page in _PAGES), *(text for text in _texts() if "pip install" in text)]
    assert [found for text in texts for found in re.findall(r"pip install (?:-\S+ )*'?\"?stoker\S*", text)] == []


def test_every_page_is_listed():
    documentation, decisions = _ROOT / "docs" / "README.md", _DECISIONS / "README.md"
    for index, pages in (
        (_ROOT / "README.md", [*_ROOT.glob("*.md"), documentation]),
        (documentation, [*_ROOT.joinpath("docs").glob("*.md"), *_DEVELOP.glob("*.md"), decisions]),
        (decisions, list(_DECISIONS.glob("*.md"))),
    ):
        text = index.read_text()
        names = [page.relative_to(index.parent) for page in pages if page != index]
        assert [str(name) for name in names if f"({name})" not in text] == []


def test_operations_quotes_messages_of_the_code():
    messages = _quoted_messages()
    assert len(messages) > 20
    assert [message for message in messages if not _is_in_code(message)] == []


def test_glossary_has_at_most_sixty_terms_of_real_packages():
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \| ([^|]+) \|$", _ROOT.joinpath("docs", "glossary.md").read_text(), re.M)
    terms = [term for term, _ in rows[1:]]
    packages = {name for _, places in rows[1:] for name in re.findall(r"`(\w+)`", places)}
    assert terms == sorted(terms, key=str.lower)
    assert len(terms) <= 60
    folders = (*_ROOT.glob("*/src"), _ROOT / "server" / "src" / "stoker")
    assert [name for name in packages if not any(folder.joinpath(name).exists() for folder in folders)] == []


def test_command_line_lists_the_exit_codes():
    text = _ROOT.joinpath("docs", "command-line.md").read_text().partition("\n## Exit codes")[2].partition("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == sorted(MEANINGS)


def _defines(module: Path, name: str) -> bool:
    """Whether the module has a function, class or method of that (dotted) name."""
    body: list[ast.stmt] = ast.parse(module.read_text()).body
    for part in name.split("."):
        found = [
            node
            for node in body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == part
        ]
        if not found:
            return False
        body = found[0].body
    return True


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/internals.md"])
def test_files_and_functions_that_a_page_names_exist(page):
    text = _ROOT.joinpath(page).read_text()
    places = set(re.findall(r"`([\w/]+\.py)(?::([\w.]+))?`", text))
    assert len(places) > 40
    inner = ("server/src/stoker", "plugins/openstack/src/stoker_openstack", ".")
    folders = [*(_ROOT / folder for folder in inner), *_ROOT.glob("*/src")]
    missing = []
    for file, name in sorted(places):
        paths = [folder / file for folder in folders]
        if "/" in file and not any(path.exists() and (not name or _defines(path, name)) for path in paths):
            missing.append(f"{file}:{name}")
    assert missing == []
