"""Regular expressions that made Python's ``re`` hold the interpreter until ``kill -9``."""

from __future__ import annotations

from urllib.parse import quote

from support.availability import assert_ends, assert_harmless
from support.templates import document

#: Each takes Python's ``re`` longer than the universe has, on these texts.
EVIL = "(([A-Za-z:]+)+)+!$"
TEXT = "OS::Heat::StructuredDeploymentGroup" * 2


def yaql(expression):
    return document(outputs={"o": {"value": {"yaql": {"expression": expression, "data": TEXT}}}})


def test_no_expression_blocks_the_process(stoker, reader):
    """All the places that take one: a list's filter, constraints in both syntaxes, and YAQL's functions."""
    constraint = {"type": "string", "default": TEXT, "constraints": [{"allowed_pattern": EVIL}]}
    cfn = {
        "HeatTemplateFormatVersion": "2012-12-12",
        "Parameters": {"p": {"Type": "String", "Default": TEXT, "AllowedPattern": EVIL}},
    }
    expressions = [
        f"$.data.matches('{EVIL}')",
        f"$.data =~ '{EVIL}'",
        f"$.data !~ '{EVIL}'",
        f"regex('{EVIL}').search($.data)",
        f"regex('{EVIL}').searchAll($.data)",
        f"regex('{EVIL}').split($.data)",
        f"$.data.replace(regex('{EVIL}'), 'x')",
        f"$.data.replaceBy(regex('{EVIL}'), 'x')",
    ]

    def attack():
        listed = reader.heat("GET", f"/resource_types?name={quote(EVIL)}")
        assert (listed.status, listed.body) == (200, {"resource_types": []})
        for refused in (document(parameters={"p": constraint}), cfn):
            answer = reader.heat("POST", "/validate", {"template": refused})
            assert answer.status == 400
            assert "does not match pattern" in answer.body["error"]["message"]
        for expression in expressions:
            answer = reader.heat("POST", "/validate", {"template": yaql(expression)})
            assert answer.status == 400, expression
            assert "take too long" in answer.body["error"]["message"]

    assert_harmless(stoker, attack)
    assert_ends(stoker)


def test_the_filter_of_types_matches_their_beginning(reader):
    listed = reader.heat("GET", "/resource_types?name=OS::Heat::Soft").body["resource_types"]
    assert listed
    assert all(name.startswith("OS::Heat::Soft") for name in listed)
    assert reader.heat("GET", "/resource_types?name=Heat").body["resource_types"] == []
    refused = reader.heat("GET", "/resource_types?name=x(%3F!y)")
    assert (refused.status, "look-ahead" in refused.body["error"]["message"]) == (400, True)


def test_many_large_expressions_are_refused_together(stoker, reader):
    """5,000 of ten thousand instructions each took minutes to compile and gigabytes to keep."""
    parameters = {
        f"p{i}": {"type": "string", "constraints": [{"allowed_pattern": f".{{999}}{i}"}]} for i in range(5_000)
    }

    def attack():
        answer = reader.heat("POST", "/validate", {"template": document(parameters=parameters)})
        assert answer.status == 400
        assert "too large" in answer.body["error"]["message"]

    assert_harmless(stoker, attack)
