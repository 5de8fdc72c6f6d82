"""Entity tags of requests, with weak comparison (RFC 9110, 8.8.3.2): compressing proxies add ``W/`` to tags."""

from __future__ import annotations


def matches(header: str, tag: str) -> bool:
    """
    Return whether ``tag`` (without quotes) is in the header If-Match, If-None-Match or If-Range; ``*`` matches any tag.
    """
    return not {"*", tag}.isdisjoint(split(header))


def split(header: str) -> set[str]:
    """Return the tags of a header, in lower case, without quotes and ``W/``."""
    return {tag.strip().removeprefix("W/").strip('"').lower() for tag in header.split(",")}
