"""Stoker's own nouns, beside Heat's API: servers, triggers, checks, schedules, hooks and more; their routes."""

from __future__ import annotations

from stoker.http.access import READ, SITE_ADMIN, WRITE
from stoker.http.api import Route
from stoker.http.console import pages
from stoker.http.stoker import (
    artifacts,
    audit,
    checks,
    enrollments,
    events,
    logs,
    overview,
    relays,
    schedules,
    server_facts,
    servers,
    settings,
    triggers,
)

_DEPLOYMENTS = "/v1/{project}/software_deployments"
_DEPLOYMENT = _DEPLOYMENTS + "/{deployment_id}"
_CHECKS = "/v1/{project}/checks"
_TRIGGERS = "/v1/{project}/software_triggers"
_TRIGGER = _TRIGGERS + "/{trigger_id}"
_SCHEDULES = "/v1/{project}/software_schedules"
_SCHEDULE = _SCHEDULES + "/{schedule_id}"
_SERVERS = "/v1/{project}/servers"
_ENROLLMENTS = "/v1/{project}/enrollments"
_RELAYS = "/v1/{project}/relays"
_HOOKS = "/v1/{project}/hooks"
_CATALOG = "/v1/{project}/catalog"

ROUTES = [
    Route("GET", _DEPLOYMENT + "/logs", READ, logs.index),
    Route("GET", _DEPLOYMENT + "/logs/{stream}", READ, logs.show_stream),
    Route("POST", _CHECKS, WRITE, checks.create, action="check deployments"),
    Route("GET", _CHECKS, READ, checks.index),
    Route("GET", _CHECKS + "/{deployment_id}", READ, checks.show),
    Route("POST", _CHECKS + "/{deployment_id}/repair", WRITE, checks.repair, action="repair"),
    Route("POST", _TRIGGERS, WRITE, triggers.create, action="create trigger"),
    Route("GET", _TRIGGERS, READ, triggers.index),
    Route("GET", _TRIGGER, READ, triggers.show),
    Route("GET", _TRIGGER + "/targets", READ, triggers.index_targets),
    Route("GET", _TRIGGER + "/targets/compact", READ, triggers.index_compact_targets),
    Route("GET", _TRIGGER + "/output_groups", READ, triggers.index_output_groups),
    Route("DELETE", _TRIGGER, WRITE, triggers.delete, action="delete trigger"),
    Route("POST", _TRIGGER + "/cancel", WRITE, triggers.cancel, action="cancel trigger"),
    Route("POST", _TRIGGER + "/retry", WRITE, triggers.retry, action="retry trigger"),
    Route("POST", _SCHEDULES, WRITE, schedules.create, action="create schedule"),
    Route("GET", _SCHEDULES, READ, schedules.index),
    Route("GET", _SCHEDULES + "/forecast", READ, schedules.predict),
    Route("GET", _SCHEDULE, READ, schedules.show),
    Route("PATCH", _SCHEDULE, WRITE, schedules.change, action="change schedule"),
    Route("POST", _SCHEDULE + "/run", WRITE, schedules.run, action="run schedule"),
    Route("DELETE", _SCHEDULE, WRITE, schedules.delete, action="delete schedule"),
    Route("GET", _SERVERS, READ, servers.index),
    Route("POST", _SERVERS, WRITE, enrollments.create_server, action="create enrollment"),
    Route("GET", _SERVERS + "/{server}", READ, servers.show),
    Route("PATCH", _SERVERS + "/{server}", WRITE, servers.change),
    Route("DELETE", _SERVERS + "/{server}", WRITE, servers.delete, action="delete server"),
    Route("POST", _SERVERS + "/{server}/approve", WRITE, enrollments.approve, action="approve"),
    Route("POST", _SERVERS + "/{server}/reject", WRITE, enrollments.reject, action="reject"),
    Route("GET", "/v1/{project}/server_counts", READ, server_facts.count),
    Route("GET", "/v1/{project}/server_facts", READ, server_facts.index),
    Route("GET", _ENROLLMENTS, READ, enrollments.index),
    Route("POST", _ENROLLMENTS, WRITE, enrollments.create, action="create enrollment"),
    Route("DELETE", _ENROLLMENTS + "/{enrollment}", WRITE, enrollments.delete, action="delete enrollment"),
    Route("POST", "/v1/{project}/console_codes", READ, pages.create_code, action="create console code"),
    Route("GET", "/v1/{project}/overview", READ, overview.show),
    Route("GET", "/v1/{project}/events", READ, events.follow),
    Route("GET", "/v1/{project}/audit", READ, audit.index),
    Route("GET", "/v1/{project}/audit/site", SITE_ADMIN, audit.index_site),
    Route("GET", "/v1/{project}/settings", SITE_ADMIN, settings.index),
    Route("GET", _RELAYS, READ, relays.index),
    Route("POST", _RELAYS, WRITE, relays.create, action="create relay"),
    Route("DELETE", _RELAYS + "/{relay}", WRITE, relays.delete, action="delete relay"),
    Route("GET", _HOOKS, READ, artifacts.index_hooks),
    Route("POST", _HOOKS, WRITE, artifacts.create_hook, 2 * 1024 * 1024, action="create hook"),
    Route("GET", _HOOKS + "/{hook_name}/{number}", READ, artifacts.show_hook),
    Route("DELETE", _HOOKS + "/{hook_name}/{number}", WRITE, artifacts.delete_hook, action="delete hook"),
    Route("GET", _CATALOG, READ, artifacts.index_entries),
    Route("POST", _CATALOG, WRITE, artifacts.create_entry, action="create catalog entry"),
    Route("GET", _CATALOG + "/{entry_name}/{number}", READ, artifacts.show_entry),
    Route("DELETE", _CATALOG + "/{entry_name}/{number}", WRITE, artifacts.delete_entry, action="delete catalog entry"),
]
