import { expect, test } from "vitest";
import { meanOf, parseMetrics, rateOf, sumOf } from "../src/model/metrics";

const TEXT = `# HELP stoker_agents Servers of the site by status.
# TYPE stoker_agents gauge
stoker_agents{status="ONLINE"} 4.0
stoker_agents{status="OFFLINE"} 1.0
stoker_http_requests_total{method="GET",route="/v1/{project}/a \\"b\\"",status="200"} 1e+03
stoker_http_requests_total{method="GET",route="/",status="500"} 2.0
seconds_sum 3.5
seconds_count 7
broken
`;

test("samples have names, labels and values", () => {
  const samples = parseMetrics(TEXT);
  expect(samples).toHaveLength(6);
  expect(samples[2]!.labels).toEqual({ method: "GET", route: '/v1/{project}/a \\"b\\"', status: "200" });
  expect(sumOf(samples, "stoker_agents")).toBe(5);
  expect(sumOf(samples, "stoker_agents", { status: "ONLINE" })).toBe(4);
  expect(sumOf(samples, "stoker_http_requests_total")).toBe(1002);
  expect(sumOf(samples, "absent")).toBe(0);
});

test("rates and means are of the time between two readings", () => {
  const before = { at: 1000, samples: parseMetrics("a_total 10\nb_sum 1\nb_count 2\n") };
  const after = { at: 6000, samples: parseMetrics("a_total 30\nb_sum 4\nb_count 4\n") };
  expect(rateOf(before, after, "a_total")).toBe(4);
  expect(rateOf(after, { ...before, at: 9000 }, "a_total")).toBeNull(); // a process has started again
  expect(rateOf(before, { ...after, at: 1000 }, "a_total")).toBeNull();
  expect(meanOf(before, after, "b")).toBe(1.5);
  expect(meanOf(after, after, "b")).toBeNull();
});
