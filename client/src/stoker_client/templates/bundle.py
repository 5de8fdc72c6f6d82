"""
Collects the parts of a stack request: template, environments, and all files that they name.

The request contains the texts as written, and each file under the name in the text, so that the service's errors can
refer to the user's files and lines. If one name refers to two different files, names are replaced by URLs, and the
request contains the rewritten structures. heatclient always does the latter.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from stoker_client.errors import BadInput
from stoker_client.templates import locations
from stoker_client.templates.documents import VERSIONS, is_template, parse

# Returns the replacement for a file's name, given the name and the URL of the document that contains it.
Visit = Callable[[str, str], str]


@dataclass
class _Document:
    """A file: its text, and its structure if it may name other files."""

    url: str
    text: str
    data: Any = None
    environment: bool = False

    def visit(self, visit: Visit) -> Any:
        walk = in_environment if self.environment else in_template
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


def collect(template: str | None, environments: Sequence[str] = ()) -> dict[str, Any]:
    """
    Read ``template`` and ``environments``, which are paths or URLs, and all files that they name.

    Return the keys of a create or update request that derive from them. ``template`` is None if the stack keeps its
    template. Raises BadInput.
    """
    try:
        return _collect(template, environments)
    except RecursionError as problem:
        raise BadInput("the template is nested too deeply") from problem


def _collect(template: str | None, environments: Sequence[str]) -> dict[str, Any]:
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
    return _body(main.text if main else None, collection.files(), environments, [document.data for document in loaded])


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


def _rewritten(collection: _Collection, main: _Document | None, environments: Sequence[_Document]) -> dict[str, Any]:
    """Return the keys with each name replaced by a URL, and files under their URLs."""
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
    return _body(template, files, [document.url for document in environments], own)


def _body(
    template: str | dict[str, Any] | None, files: dict[str, str], names: Sequence[str], environments: Sequence[Any]
) -> dict[str, Any]:
    """Return the keys of the request. Later environments take precedence. Empty keys are omitted."""
    environment: dict[str, Any] = reduce(merge, environments, {})
    keys = {"template": template, "files": files, "environment_files": list(names), "environment": environment}
    return {key: value for key, value in keys.items() if value or key == "files"}


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


NESTED = (".yaml", ".template")
#: The type whose property names a template, and the keys of a resource in HOT and in CloudFormation's syntax.
_NESTED_STACK, _TEMPLATE_URL = "AWS::CloudFormation::Stack", "TemplateURL"
_SYNTAXES = (("type", "properties"), ("Type", "Properties"))
NOT_FILES = ("base_url", "hooks", "restricted_actions")


def in_template(data: Any, base: str, visit: Visit) -> Any:
    """
    Return ``data`` with each name of a file replaced by ``visit``'s result.

    ``get_file``, types such as ``x.yaml``, and the ``TemplateURL`` of a nested stack name files.
    """
    done: dict[int, Any] = {}

    def copy(node: Any) -> Any:
        """Copy each node once, even if YAML aliases repeat it."""
        if not isinstance(node, dict | list):
            return node
        if id(node) not in done:
            # Registered before it is filled, because an alias may refer to an enclosing node.
            if isinstance(node, dict):
                mapping = done[id(node)] = dict[Any, Any]()
                for key, value in node.items():
                    mapping[key] = visit(value, base) if _names_a_file(key, value) else copy(value)
                _visit_nested_url(mapping, base, visit)
            else:
                items = done[id(node)] = list[Any]()
                items.extend(map(copy, node))
        return done[id(node)]

    return copy(data)


def _visit_nested_url(resource: dict[Any, Any], base: str, visit: Visit) -> None:
    """Replace the name of the template in the properties of an AWS::CloudFormation::Stack."""
    for type_key, properties_key in _SYNTAXES:
        properties = resource.get(properties_key)
        if resource.get(type_key) == _NESTED_STACK and isinstance(properties, dict):
            url = properties.get(_TEMPLATE_URL)
            if isinstance(url, str):
                resource[properties_key] = {**properties, _TEMPLATE_URL: visit(url, base)}


def _names_a_file(key: Any, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return key == "get_file" or (key == "type" and (value.endswith(NESTED) or locations.is_catalog(value)))


def in_environment(data: Any, base: str, visit: Visit) -> Any:
    """Return ``data`` with each template name in ``resource_registry`` replaced by ``visit``'s result."""
    registry = data.get("resource_registry") if isinstance(data, dict) else None
    if not isinstance(registry, dict):
        return data
    return {**data, "resource_registry": _registry(registry, base, visit)}


def _registry(registry: dict[Any, Any], base: str, visit: Visit) -> dict[Any, Any]:
    inside = _base(registry, base)
    visited = {key: visit(value, inside) if _maps_to_a_file(key, value) else value for key, value in registry.items()}
    resources = registry.get("resources")
    if isinstance(resources, dict):
        visited["resources"] = {
            name: _registry(entry, inside, visit) if isinstance(entry, dict) else entry
            for name, entry in resources.items()
        }
    return visited


def _base(registry: dict[Any, Any], base: str) -> str:
    own = registry.get("base_url")
    return locations.folder(own, base) if isinstance(own, str) else base


def _maps_to_a_file(key: Any, value: Any) -> bool:
    """Whether a registry entry names a file: a type such as ``X::Y::Z`` is built in, all else is a template."""
    return key not in NOT_FILES and isinstance(value, str) and "::" not in value
