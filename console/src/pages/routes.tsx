import type { ComponentType } from "preact";
import { lazy } from "../ui/lazy";
import { OverviewPage } from "./overview";
import { RunPage } from "./run";
import { ServerPage } from "./server";
import { ServersPage } from "./servers";
import { StackPage } from "./stack";
import { StacksPage } from "./stacks";
import { TriggerPage } from "./trigger";
import { TriggersPage } from "./triggers";

export interface Route {
  /** The first segment of the path; the others are the page's arguments. */
  segment: string;
  /** The number of the other segments. */
  count: number;
  page: ComponentType<{ names: string[] }>;
}

export const ROUTES: readonly Route[] = [
  { segment: "", count: 0, page: OverviewPage },
  { segment: "stacks", count: 0, page: StacksPage },
  { segment: "stacks", count: 2, page: StackPage },
  { segment: "new-stack", count: 0, page: lazy(() => import("./stack_edit"), "NewStackPage") },
  { segment: "update-stack", count: 2, page: lazy(() => import("./stack_edit"), "UpdateStackPage") },
  { segment: "servers", count: 0, page: ServersPage },
  { segment: "servers", count: 1, page: ServerPage },
  { segment: "enroll", count: 0, page: lazy(() => import("./enroll"), "EnrollPage") },
  { segment: "run", count: 0, page: lazy(() => import("./run_command"), "RunCommandPage") },
  { segment: "triggers", count: 0, page: TriggersPage },
  { segment: "triggers", count: 1, page: TriggerPage },
  { segment: "runs", count: 1, page: RunPage },
  { segment: "schedules", count: 0, page: lazy(() => import("./schedules"), "SchedulesPage") },
  { segment: "drift", count: 0, page: lazy(() => import("./drift"), "DriftPage") },
  { segment: "runs", count: 0, page: lazy(() => import("./runs"), "RunsPage") },
];

export interface Section {
  segment: string;
  title: string;
  /** The key after `g` that opens the page. */
  key: string;
  /** Whether a narrow window shows the page in the menu "More". */
  isMore?: boolean;
}

/** The pages of the navigation. */
export const SECTIONS: readonly Section[] = [
  { segment: "", title: "Overview", key: "o" },
  { segment: "stacks", title: "Stacks", key: "s" },
  { segment: "servers", title: "Servers", key: "v" },
  { segment: "triggers", title: "Triggers", key: "t" },
  { segment: "schedules", title: "Schedules", key: "c", isMore: true },
  { segment: "drift", title: "Drift", key: "d", isMore: true },
];

/** What the palette offers to do, beside the pages. */
export const ACTIONS: readonly { title: string; path: readonly string[]; query?: Record<string, string> }[] = [
  { title: "Run a command", path: ["run"] },
  { title: "New stack", path: ["new-stack"] },
  { title: "Run a config", path: ["run"], query: { what: "config" } },
  { title: "Run a catalog entry", path: ["run"], query: { what: "entry" } },
  { title: "Upgrade agents", path: ["run"], query: { what: "upgrade" } },
  { title: "Enroll servers", path: ["enroll"] },
];
