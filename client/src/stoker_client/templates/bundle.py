"""
Collects the parts of a stack request: template, environments, and all files that they name.

The request contains the texts as written, and each file under the name in the text, so that the service's errors can
refer to the user's files and lines. If one name refers to two different files, names are replaced by URLs, and the
request contains the rewritten structures. heatclient always does the latter.
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
    """The keys of a create or update request that derive from files."""

    template: str | dict[str, Any] | None
    files: dict[str, str]
    environment_files: list[str]
    environment: dict[str, Any]

    def body(self) -> dict[str, Any]:
        """Return the keys of the request. Empty keys are omitted."""
        fields = {
            "template": self.template,
            "files": self.files,
            "environment_files": self.environment_files,
            "environment": self.environment,
        }
        return {key: value for key, value in fields.items() if value or key == "files"}


@dataclass
class _Document:
    """A file: its text, and its structure if it may name other files."""

    url: str
    text: str
    data: Any = None
    environment: bool = False

    def visit(self, visit: references.Visit) -> Any:
        walk = references.in_environment if self.environment else references.in_template
        return walk(self.data, self.url, visit)


@dataclass
class _Collection:
    """All documents by URL, and the URLs for which each name is used."""

    documents: dict[str, _Document] = field(default_factory=dict)
    names: dict[str, list[str]] = field(default_factory=dict)

    def add(self, document: _Document, title: str) -> None:
        """Add ``document``, called ``shown`` in errors, and all files that it names."""
        self.documents[document.url] = document
        document.visit(lambda name, base: self._reference(name, base, document.url, title))

    def _reference(self, name: str, base: str, asker: str, title: str) -> str:
        url = locations.locate(name, base)
        if locations.is_catalog(url):
            self._entry(url)
            return name
        if locations.is_web(asker) and not locations.is_web(url):
            raise BadInput(f"{title} comes from the network and names {name}, a file of this machine: refused")
        self.name(name, url)
        if url not in self.documents:
            self._read(url, name, title)
        return name

    def _entry(self, url: str) -> None:
        """Add an entry of the catalog. The service adds the entries that Stoker does not ship."""
        text = locations.find_entry(url)
        if text is not None:
            self.name(url, url)
            self.documents[url] = _Document(url, text)

    def _read(self, url: str, name: str, title: str) -> None:
        text = locations.read(url, title)
        data = _nested(text)
        self.documents[url] = _Document(url, text, data)
        if data is not None:
            self.add(self.documents[url], name)

    def name(self, name: str, url: str) -> None:
        """Record that ``name`` refers to ``url``."""
        urls = self.names.setdefault(name, [])
        if url not in urls:
            urls.append(url)

    def ambiguous(self) -> bool:
        """Whether a name refers to files with different contents."""
        return any(len({self.documents[url].text for url in urls}) > 1 for urls in self.names.values())

    def files(self) -> dict[str, str]:
        """Return the contents by the names as written."""
        return {name: self.documents[urls[0]].text for name, urls in self.names.items()}


def _nested(text: str) -> Any:
    """Return the structure of a nested template, or None for other files, which are sent without inspection."""
    if not any(version in text for version in VERSIONS):
        return None
    try:
        data = parse(text, "")
    except BadInput:
        return None
    return data if is_template(data) else None


def collect(template: str | None, environments: Sequence[str] = ()) -> Bundle:
    """
    Read ``template`` and ``environments``, which are paths or URLs, and all files that they name.

    ``template`` is None if the stack keeps its template. Raises BadInput.
    """
    try:
        return _collect(template, environments)
    except RecursionError as problem:
        raise BadInput("the template is nested too deeply") from problem


def _collect(template: str | None, environments: Sequence[str]) -> Bundle:
    collection = _Collection()
    main = _main(template) if template is not None else None
    if main is not None:
        collection.add(main, str(template))
    loaded = [_environment(name) for name in environments]
    for name, document in zip(environments, loaded, strict=True):
        collection.name(name, document.url)
        collection.add(document, name)
    if collection.ambiguous():
        return _rewritten(collection, main, loaded)
    return Bundle(main.text if main else None, collection.files(), list(environments), _merge([d.data for d in loaded]))


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


def _rewritten(collection: _Collection, main: _Document | None, environments: Sequence[_Document]) -> Bundle:
    """Return the bundle with each name replaced by a URL, and files under their URLs."""
    structures = {
        url: document.visit(locations.locate)
        for url, document in collection.documents.items()
        if document.data is not None
    }
    named = {url for urls in collection.names.values() for url in urls}
    files = {
        url: json.dumps(structures[url]) if url in structures else collection.documents[url].text
        for url in sorted(named)
    }
    own = [structures[document.url] for document in environments]
    template = structures[main.url] if main else None
    return Bundle(template, files, [document.url for document in environments], _merge(own))


def _merge(environments: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge environments. Later ones take precedence."""
    merged: dict[str, Any] = {}
    for environment in environments:
        merged = merge(merged, environment)
    return merged


def merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge mappings by key; other values of ``over`` replace those of ``under``. A null leaves a mapping unchanged."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, dict):
            merged[key] = merge(below if isinstance(below, dict) else {}, value)
        elif value is not None or not isinstance(below, dict):
            merged[key] = value
    return merged
