"""The main job: templates in, real agents run them in order, outputs come back."""

from __future__ import annotations

import json
import urllib.request

from support.source_code import ROOT

EXAMPLES = ROOT / "examples"


def test_one_config_deployed_twice_with_different_inputs(stoker):
    stoker.run("stack", "create", "two", "-t", str(EXAMPLES / "two-deployments.yaml"), "--wait", "-P", "greeting=Hi")
    shown = {each["output_key"]: each["output_value"] for each in stoker.json("stack", "outputs", "two")}

    assert shown["result"] == "Hi: foo is fooooo\n"
    assert shown["other_result"] == "Hi: foo is Hi: foo is fooooo\n\n"
    assert (shown["status_code"], shown["stderr"]) == (0, "")
    assert shown["stdout"].startswith("writing ")


def test_three_tiers_connect_and_answer(stoker):
    stoker.run("stack", "create", "app", "-t", str(EXAMPLES / "three-tier.yaml"), "--wait", "-P", "title=<One>")
    shown = {each["output_key"]: each["output_value"] for each in stoker.json("stack", "outputs", "app")}
    page = "<h1>&lt;One&gt;</h1><ul><li>red</li><li>green</li><li>blue</li></ul>"

    assert shown["page"] == page
    with urllib.request.urlopen(shown["url"]) as answer:
        assert answer.read().decode() == page
    written = list(stoker.state_dir.glob("local/*/home/db/records.json"))
    assert [json.loads(each.read_text()) for each in written] == [["red", "green", "blue"]]

    stoker.run("stack", "delete", "app", "--yes", "--wait")
    stoker.until(lambda: not list(stoker.state_dir.glob("local/*")))
    try:
        urllib.request.urlopen(shown["url"], timeout=2).close()
    except OSError:
        return
    raise AssertionError("the proxy outlived its server")


def test_a_failure_stops_the_stack_and_names_the_reason(stoker):
    template = str(EXAMPLES / "fails-half-way.yaml")
    done = stoker.run("stack", "create", "bad", "-t", template, "--wait", check=False)

    assert done.returncode == 1
    assert "column 'color' exists already" in done.stderr
    assert done.stderr.index("column 'color'") < done.stderr.index("bad is CREATE_FAILED")
    states = {each["resource_name"]: each["resource_status"] for each in stoker.json("stack", "resources", "bad")}
    assert (states["prepare"], states["migrate"], states["start"]) == (
        "CREATE_COMPLETE",
        "CREATE_FAILED",
        "INIT_COMPLETE",
    )
    assert not list(stoker.state_dir.glob("local/*/home/started"))


def test_a_component_runs_for_every_action_of_its_stack(stoker):
    def databases() -> list[str]:
        return [each.read_text() for each in stoker.state_dir.glob("local/*/home/database")]

    template = str(EXAMPLES / "backup.yaml")
    stoker.run("stack", "create", "shop", "-t", template, "--wait")
    assert databases() == ["1\n2\n3\n4\n5\n"] * 3
    stoker.run("stack", "update", "shop", "-t", template, "-P", "records=2", "--wait")
    assert databases() == ["1\n2\n"] * 3
    shown = {each["output_key"]: each["output_value"] for each in stoker.json("stack", "outputs", "shop")}
    assert shown["held"] == dict.fromkeys(("one", "two", "three"), "2\n")
    stoker.run("stack", "delete", "shop", "--yes", "--wait")
    stoker.until(lambda: not list(stoker.state_dir.glob("local/*")))
