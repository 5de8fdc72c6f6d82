"""Everything that goes with a stack: template, environments, and the files that they name, however deeply.

The service is sent the texts as they were written, each file under the name by which it is asked for, so that its
errors can name the user's files and lines. Only when one name means two different files must the names be
replaced by URLs, and then the rewritten structures are sent, which is what heatclient always does.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker_client.errors import BadInput
from stoker_client.templates import locations, references
from stoker_client.templates.documents import VERSIONS, is_template, parse


@dataclass(frozen=True)
class Bundle:
    """The keys of a create or update that come from files."""

    template: str | dict[str, Any] | None
    files: dict[str, str]
    environment_files: list[str]
    environment: dict[str, Any]

    def body(self) -> dict[str, Any]:
        """As it goes into the request: absent keys are left out."""
        found = {
            "template": self.template,
            "files": self.files,
            "environment_files": self.environment_files,
            "environment": self.environment,
        }
        return {key: value for key, value in found.items() if value or key == "files"}


@dataclass
class _Document:
    """One file that was read: its text, and its structure when it may name other files."""

    url: str
    text: str
    data: Any = None
    environment: bool = False

    def visited(self, visit: references.Visit) -> Any:
        walk = references.in_environment if self.environment else references.in_template
        return walk(self.data, self.url, visit)


@dataclass
class _Collection:
    """All documents by URL, and which URLs each name was used for."""

    documents: dict[str, _Document] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, document: _Document, shown: str) -> None:
        """Take in ``document``, called ``shown``, and everything it leads to."""
        self.documents[document.url] = document
        document.visited(lambda name, base: self._reference(name, base, document.url, shown))

    def _reference(self, name: str, base: str, asker: str, shown: str) -> str:
        url = locations.locate(name, base)
        if locations.is_web(asker) and not locations.is_web(url):
            raise BadInput(f"{shown} comes from the network and names {name}, a file of this machine: refused")
        self.name(name, url)
        if url not in self.documents:
            self._read(url, name, shown)
        return name

    def _read(self, url: str, name: str, shown: str) -> None:
        text = locations.read(url, shown)
        data = _nested(text)
        self.documents[url] = _Document(url, text, data)
        if data is not None:
            self.add(self.documents[url], name)

    def name(self, name: str, url: str) -> None:
        """Remember that ``name`` is used for what is at ``url``."""
        urls = self.names.setdefault(name, [])
        if url not in urls:
            urls.append(url)

    def ambiguous(self) -> bool:
        """Whether some name means files of different content."""
        return any(len({self.documents[url].text for url in urls}) > 1 for urls in self.names.values())

    def files(self) -> dict[str, str]:
        """Contents under the names as written."""
        return {name: self.documents[urls[0]].text for name, urls in self.names.items()}


def _nested(text: str) -> Any:
    """The structure of a file that is itself a template. A script or a broken file is none: it is only carried."""
    if not any(version in text for version in VERSIONS):
        return None
    try:
        data = parse(text, "")
    except BadInput:
        return None
    return data if is_template(data) else None


def collect(template: str | None, environments: Sequence[str] = ()) -> Bundle:
    """Read ``template`` (none when the stack keeps its own) and ``environments``, given as paths or URLs."""
    try:
        return _collect(template, environments)
    except RecursionError as problem:
        raise BadInput("the template is nested too deeply") from problem


def _collect(template: str | None, environments: Sequence[str]) -> Bundle:
    found = _Collection()
    main = _main(template) if template is not None else None
    if main is not None:
        found.add(main, str(template))
    loaded = [_environment(name) for name in environments]
    for name, document in zip(environments, loaded, strict=True):
        found.name(name, document.url)
        found.add(document, name)
    if found.ambiguous():
        return _rewritten(found, main, loaded)
    return Bundle(main.text if main else None, found.files(), list(environments), _merged([d.data for d in loaded]))


def _main(name: str) -> _Document:
    url = locations.locate(name)
    text = locations.read(url, "--template")
    return _Document(url, text, parse(text, name))


def _environment(name: str) -> _Document:
    url = locations.locate(name)
    text = locations.read(url, "--environment")
    data = parse(text, name)
    if not isinstance(data, dict | None):
        raise BadInput(f"{name}: an environment is a mapping of sections, not a {type(data).__name__}")
    return _Document(url, text, data or {}, environment=True)


def _rewritten(found: _Collection, main: _Document | None, environments: Sequence[_Document]) -> Bundle:
    """The same with every name replaced by a URL, and files under their URLs."""
    structures = {
        url: document.visited(locations.locate)
        for url, document in found.documents.items()
        if document.data is not None
    }
    named = {url for urls in found.names.values() for url in urls}
    files = {
        url: json.dumps(structures[url]) if url in structures else found.documents[url].text for url in sorted(named)
    }
    own = [structures[document.url] for document in environments]
    template = structures[main.url] if main else None
    return Bundle(template, files, [document.url for document in environments], _merged(own))


def _merged(environments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Environments laid over one another, later ones on top."""
    merged: dict[str, Any] = {}
    for environment in environments:
        merged = merge(merged, environment)
    return merged


def merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """``over`` laid on ``under``: mappings key by key, anything else replaced; an empty key leaves a mapping alone."""
    made = dict(under)
    for key, value in over.items():
        below = made.get(key)
        if isinstance(value, dict):
            made[key] = merge(below if isinstance(below, dict) else {}, value)
        elif value is not None or not isinstance(below, dict):
            made[key] = value
    return made
