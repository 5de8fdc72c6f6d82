import type { ComponentType } from "preact";
import { session } from "../api/session";
import { lazy } from "../ui/lazy";
import { OverviewPage } from "./overview";
import { RunPage } from "./run";
import { RunsPage } from "./runs";
import { ServerPage } from "./server";
import { ServersPage } from "./servers";
import { StackPage } from "./stack";
import { StacksPage } from "./stacks";
import { TriggerPage } from "./trigger";
import { TriggersPage } from "./triggers";

interface Route {
  /** The first segment of the path; the others are the page's arguments. */
  segment: string;
  /** The number of the other segments. */
  count: number;
  page: ComponentType<{ names: string[] }>;
  /** Says why the user cannot open the page, and which one to open instead; undefined: the user can. */
  refusal?: () => Refusal | undefined;
}

interface Refusal {
  title: string;
  reason: string;
  link?: string;
  instead?: readonly string[];
}

const forWriters = (refusal: Refusal) => () => (session.can_write ? undefined : refusal);
const forStacks = (title: string) => forWriters({ title, reason: "Readers cannot change stacks.", link: "See the stacks", instead: ["stacks"] });
const forAdministrators = (title: string) => () =>
  session.is_admin ? undefined : { title, reason: `Only administrators of the site see its ${title.toLowerCase()}.` };

export const ROUTES: readonly Route[] = [
  { segment: "", count: 0, page: OverviewPage },
  { segment: "stacks", count: 0, page: StacksPage },
  { segment: "stacks", count: 2, page: StackPage },
  { segment: "new-stack", count: 0, page: lazy(() => import("./stack_edit"), "NewStackPage"), refusal: forStacks("New stack") },
  { segment: "update-stack", count: 2, page: lazy(() => import("./stack_edit"), "UpdateStackPage"), refusal: forStacks("Update") },
  { segment: "servers", count: 0, page: ServersPage },
  { segment: "servers", count: 1, page: ServerPage },
  {
    segment: "enroll",
    count: 0,
    page: lazy(() => import("./enroll"), "EnrollPage"),
    refusal: forWriters({ title: "Enroll servers", reason: "Readers cannot enroll servers.", link: "See the servers", instead: ["servers"] }),
  },
  {
    segment: "run",
    count: 0,
    page: lazy(() => import("./run_command"), "RunCommandPage"),
    refusal: forWriters({ title: "Run", reason: "Readers cannot start runs.", link: "See what has run", instead: ["triggers"] }),
  },
  { segment: "triggers", count: 0, page: TriggersPage },
  { segment: "triggers", count: 1, page: TriggerPage },
  { segment: "runs", count: 1, page: RunPage },
  { segment: "schedules", count: 0, page: lazy(() => import("./schedules"), "SchedulesPage") },
  { segment: "drift", count: 0, page: lazy(() => import("./drift"), "DriftPage") },
  { segment: "runs", count: 0, page: RunsPage },
  { segment: "configs", count: 0, page: lazy(() => import("./configs"), "ConfigsPage") },
  { segment: "configs", count: 1, page: lazy(() => import("./configs"), "ConfigPage") },
  { segment: "catalog", count: 0, page: lazy(() => import("./catalog"), "CatalogPage") },
  { segment: "catalog", count: 2, page: lazy(() => import("./catalog"), "CatalogEntryPage") },
  { segment: "audit", count: 0, page: lazy(() => import("./audit"), "AuditPage") },
  { segment: "users", count: 0, page: lazy(() => import("./users"), "UsersPage") },
  { segment: "relays", count: 0, page: lazy(() => import("./relays"), "RelaysPage") },
  { segment: "settings", count: 0, page: lazy(() => import("./settings"), "SettingsPage"), refusal: forAdministrators("Settings") },
  { segment: "metrics", count: 0, page: lazy(() => import("./metrics"), "MetricsPage"), refusal: forAdministrators("Metrics") },
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
  { segment: "configs", title: "Configs", key: "f", isMore: true },
  { segment: "catalog", title: "Catalog", key: "l", isMore: true },
  { segment: "audit", title: "Audit", key: "a", isMore: true },
  { segment: "users", title: "Users", key: "u", isMore: true },
  { segment: "relays", title: "Relays", key: "r", isMore: true },
  { segment: "settings", title: "Settings", key: "e", isMore: true },
  { segment: "metrics", title: "Metrics", key: "m", isMore: true },
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
