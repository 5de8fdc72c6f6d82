import { describe, expect, test } from "vitest";
import { addCondition, completionsAt, quote, removeCondition, splitConditions } from "../src/model/selector";
import { joinNames, judge, parseCanary, parseLabels, scriptOf, splitNames } from "../src/model/targets";

const FACTS = [
  { name: "os.family", count: 9, values: [{ value: "debian", count: 6 }, { value: "redhat", count: 3 }] },
  { name: "os.name", count: 9, values: [{ value: "Debian GNU/Linux", count: 6 }] },
  { name: "tier", count: 4, values: [{ value: "web", count: 3 }, { value: "and", count: 1 }] },
];
const inserts = (text: string) => completionsAt(text, text.length, FACTS).map((one) => text.slice(0, one.from) + one.insert);

describe("completion of selectors", () => {
  test.each([
    ["", ["os.family", "os.name", "tier"]],
    ["ti", ["tier"]],
    ["fam", ["os.family"]],
    ["tier=", ["tier=web", 'tier="and"']],
    ["tier=w", ["tier=web"]],
    ["tier=web", []],
    ["tier=web ", []],
    ["tier=web and os.f", ["tier=web and os.family"]],
    ["not (ti", ["not (tier"]],
    ["os.family in (debian, r", ["os.family in (debian, redhat"]],
    ["os.name=", ['os.name="Debian GNU/Linux"']],
    ['os.name="Deb', ['os.name="Debian GNU/Linux"']],
    ["absent=", []],
  ])("%s", (text, expected) => expect(inserts(text)).toEqual(expected));
});

describe("conditions", () => {
  test("are added, split and removed", () => {
    expect(addCondition("", "a=1")).toBe("a=1");
    expect(addCondition("a=1", "b=2")).toBe("a=1 and b=2");
    expect(addCondition("a=1", "a=1")).toBe("a=1");
    expect(addCondition("a=1 or b=2", "c=3")).toBe("(a=1 or b=2) and c=3");
    expect(splitConditions("(a=1 or b=2) and c in (x, y), d=\"and or\"")).toEqual(["(a=1 or b=2)", "c in (x, y)", 'd="and or"']);
    expect(splitConditions("a=1 or b=2")).toBeNull();
    expect(removeCondition("a=1, b=2", "a=1")).toBe("b=2");
  });
  test("quote values with characters of their own", () => {
    expect([quote("web-1"), quote("a b"), quote('a"b'), quote("or")]).toEqual(["web-1", '"a b"', `'a"b'`, '"or"']);
  });
});

describe("targets", () => {
  const server = {
    id: "1",
    name: "web1",
    status: "ONLINE",
    problem: null,
    window: { open: true, changes_at: null },
    denial: null,
    policy: { maintenance_windows: [] as unknown[] },
  };
  test("are judged by what keeps a run from them", () => {
    expect(judge(server, false).when).toBe("now");
    expect(judge(server, true).when).toBe("out");
    expect(judge({ ...server, denial: "no scripts" }, false)).toEqual({ when: "out", reason: "no scripts" });
    expect(judge({ ...server, status: "PENDING_APPROVAL" }, false).when).toBe("out");
    expect(judge({ ...server, status: "OFFLINE" }, false).when).toBe("waits");
    expect(judge({ ...server, problem: "disk full" }, false).reason).toContain("disk full");
    expect(judge({ ...server, window: { open: false, changes_at: null } }, false).when).toBe("waits");
  });
  test("are named in a text", () => {
    const names = ["web1", "a b", "db*"];
    expect(splitNames(joinNames(names))).toEqual(names);
    expect(splitNames("web1,web2\n web3")).toEqual(["web1", "web2", "web3"]);
  });
  test("have labels and canaries as the command line writes them", () => {
    expect(parseLabels("tier=web site-")).toEqual({ tier: "web", site: null });
    expect(() => parseLabels("tier")).toThrow("tier");
    expect(() => parseLabels("")).toThrow();
    expect([parseCanary(""), parseCanary("3"), parseCanary("10%")]).toEqual([null, 3, "10%"]);
    expect(() => parseCanary("0")).toThrow();
    expect(scriptOf("df -h")).toBe("#!/bin/sh\ndf -h\n");
    expect(scriptOf("#!/bin/bash\nx\n")).toBe("#!/bin/bash\nx\n");
  });
});
