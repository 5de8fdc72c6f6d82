"""POLL_SERVER_CFN: CloudFormation's DescribeStackResource, signed with this server's EC2 key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import urllib.parse
from typing import Any, List, Mapping, Tuple
from xml.etree import ElementTree

from stoker_agent.transports.base import Document, Making, Source, document, parse_json
from stoker_agent.web import DOCUMENT, Unreachable, host_of


class Cfn(Source):
    """Polls the metadata of one or more resources through the CloudFormation API."""

    name = "cfn"
    needed = ("metadata_url", "access_key_id", "secret_access_key", "stack_name", "path")

    def __init__(self, section: Mapping[str, Any], making: Making) -> None:
        super().__init__(section, making)
        self._url = str(section["metadata_url"])
        self._access, self._secret = str(section["access_key_id"]), str(section["secret_access_key"])
        self._stack = str(section["stack_name"])
        paths = section["path"]
        self._paths = [str(path) for path in (paths if isinstance(paths, list) else [paths])]

    def read(self) -> List[bytes]:
        """Return the texts of all paths."""
        return [self._field(path) for path in self._paths]

    def parse(self, content: List[bytes]) -> Document:
        """Return the combined entries of all paths."""
        parts = [document(_below(parse_json(content[at]), path)) for at, path in enumerate(self._paths)]
        collect = next((part.collect for part in parts if part.collect), {})
        listed = all(part.lists for part in parts)
        return Document([entry for part in parts for entry in part.entries], collect, listed)

    def _field(self, path: str) -> bytes:
        """Return the JSON text of the field that ``path`` names. Raises Unreachable."""
        resource, field, _ = _words(path)
        params = {
            "Action": "DescribeStackResource",
            "StackName": self._stack,
            "LogicalResourceId": resource,
            "AWSAccessKeyId": self._access,
            "SignatureMethod": "HmacSHA256",
            "SignatureVersion": "2",
        }
        host = host_of(self._url)
        place = urllib.parse.urlsplit(self._url).path or "/"
        params["Signature"] = signature(self._secret, "GET", host, place, params)
        answer = self._web.call(
            "GET",
            f"{self._url.partition('?')[0]}?{_query(params)}",
            headers={"Host": host},
            seconds=self._seconds,
            limit=DOCUMENT,
        )
        if answer.status != 200:
            raise Unreachable(f"the server answered {answer.summary()}")
        return _text(answer.body, field)


def signature(secret: str, verb: str, host: str, path: str, params: Mapping[str, str]) -> str:
    """Return the signature of AWS signature version 2."""
    text = f"{verb}\n{host}\n{path}\n{_query(params)}"
    return base64.b64encode(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()).decode()


def _query(params: Mapping[str, str]) -> str:
    return "&".join(
        f"{urllib.parse.quote(name, safe='-_~')}={urllib.parse.quote(value, safe='-_~')}"
        for name, value in sorted(params.items())
    )


def _words(path: str) -> Tuple[str, str, List[str]]:
    """Split ``resource.Metadata.some.keys`` into resource, field and keys."""
    resource, *rest = path.split(".")
    return resource, rest[0] if rest else "Metadata", rest[1:]


def _text(body: bytes, field: str) -> bytes:
    """Return the text of the element ``field``. Raises Unreachable."""
    if b"<!DOCTYPE" in body:
        raise Unreachable("the server's answer declares a document type: no CloudFormation API does")
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 — documents that declare entities are rejected above
    except ElementTree.ParseError as error:
        raise Unreachable(f"the server's answer is no XML: {error}") from None
    for detail in root.iter():
        if _plain(detail.tag) == "StackResourceDetail":
            for element in detail:
                if _plain(element.tag) == field:
                    return (element.text or "{}").encode()
    raise Unreachable(f"the server's answer has no {field} of a StackResourceDetail")


def _plain(tag: str) -> str:
    """Return the tag without its namespace."""
    return tag.rpartition("}")[2]


def _below(data: Any, path: str) -> Any:
    for word in _words(path)[2]:
        data = data.get(word, {}) if isinstance(data, dict) else {}
    return data
