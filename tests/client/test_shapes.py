"""The client's types of objects are those of the OpenAPI document."""

from support.client_shapes import FILE, render


def test_the_types_are_current():
    assert FILE.read_text() == render(), "`make shapes` writes them again"
