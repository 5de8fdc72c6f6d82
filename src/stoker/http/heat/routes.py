"""Routes of the Heat API with their access rules, the most frequent ones first."""

from __future__ import annotations

from stoker.http.access import AGENT, MEMBER, READER, MaySignal, MaySignalDeployment, OneResource, SiteAdmin, Token
from stoker.http.heat import (
    actions,
    agent_upgrades,
    audit,
    catalog,
    checks,
    configs,
    deployments,
    enrollments,
    events,
    hooks,
    logs,
    previews,
    relays,
    resources,
    runs,
    schedules,
    servers,
    site,
    snapshots,
    stack_lookup,
    stacks,
    trigger_events,
    triggers,
    types,
)
from stoker.http.request_context import Route
from stoker.http.threads import TEMPLATES

_READ = Token(READER)
_WRITE = Token(MEMBER)
#: Heat permits these routes to the users of servers, too.
_READ_OR_AGENT = OneResource(READER, AGENT)

_CONFIGS = "/v1/{project}/software_configs"
_CONFIG = _CONFIGS + "/{config_id}"
_DEPLOYMENTS = "/v1/{project}/software_deployments"
_DEPLOYMENT = _DEPLOYMENTS + "/{deployment_id}"
_CHECKS = "/v1/{project}/checks"
_TRIGGERS = "/v1/{project}/software_triggers"
_TRIGGER = _TRIGGERS + "/{trigger_id}"
_SCHEDULES = "/v1/{project}/software_schedules"
_SCHEDULE = _SCHEDULES + "/{schedule_id}"
_SERVERS = "/v1/{project}/servers"
_UPGRADES = "/v1/{project}/agent_upgrades"
_ENROLLMENTS = "/v1/{project}/enrollments"
_RELAYS = "/v1/{project}/relays"
_HOOKS = "/v1/{project}/hooks"
_CATALOG = "/v1/{project}/catalog"
_TYPES = "/v1/{project}/resource_types"
_VERSIONS = "/v1/{project}/template_versions"
_STACKS = "/v1/{project}/stacks"
_NAMED = _STACKS + "/{stack_name}"
_STACK = _NAMED + "/{stack_id}"
_SNAPSHOT = _STACK + "/snapshots/{snapshot_id}"
_RESOURCE = _STACK + "/resources/{resource_name}"

#: The path may name a stack by name or id alone, also with one of these segments after it.
_BELOW = ("resources", "events", "template", "actions", "environment", "files", "outputs")
_REDIRECTED = (("GET", _READ_OR_AGENT), ("POST", _WRITE), ("PUT", _WRITE), ("PATCH", _WRITE), ("DELETE", _WRITE))
#: A request with a template contains all its files.
_TEMPLATE_LIMIT = 16 * 1024 * 1024
#: A result may contain the whole output of a run.
_SIGNAL_LIMIT = 2 * 1024 * 1024

ROUTES = [
    Route("GET", _DEPLOYMENTS + "/metadata/{server_id}", OneResource(READER, AGENT), deployments.metadata),
    Route("POST", _CONFIGS, _WRITE, configs.create),
    Route("POST", _DEPLOYMENTS, _WRITE, deployments.create),
    Route("GET", _DEPLOYMENT, _READ, deployments.show),
    Route("PUT", _DEPLOYMENT, _WRITE, deployments.update),
    Route("DELETE", _DEPLOYMENT, _WRITE, deployments.delete),
    Route("GET", _DEPLOYMENT + "/logs", _READ, logs.follow),
    Route("GET", _DEPLOYMENT + "/runs", _READ, runs.index),
    Route("POST", _DEPLOYMENT + "/cancel", _WRITE, runs.cancel),
    Route("POST", _DEPLOYMENT + "/retry", _WRITE, runs.retry),
    Route("POST", _DEPLOYMENT + "/signal", MaySignalDeployment(MEMBER, AGENT), runs.signal, _SIGNAL_LIMIT),
    Route("GET", _DEPLOYMENTS, _READ, deployments.index),
    Route("POST", _CHECKS, _WRITE, checks.create),
    Route("GET", _CHECKS, _READ, checks.index),
    Route("GET", _CHECKS + "/{deployment_id}", _READ, checks.show),
    Route("POST", _TRIGGERS, _WRITE, triggers.create),
    Route("GET", _TRIGGERS, _READ, triggers.index),
    Route("GET", _TRIGGER, _READ, triggers.show),
    Route("GET", _TRIGGER + "/targets", _READ, triggers.index_targets),
    Route("GET", _TRIGGER + "/events", _READ, trigger_events.follow),
    Route("DELETE", _TRIGGER, _WRITE, triggers.delete),
    Route("POST", _TRIGGER + "/cancel", _WRITE, triggers.cancel),
    Route("POST", _TRIGGER + "/retry", _WRITE, triggers.retry),
    Route("POST", _SCHEDULES, _WRITE, schedules.create),
    Route("GET", _SCHEDULES, _READ, schedules.index),
    Route("GET", _SCHEDULE, _READ, schedules.show),
    Route("PATCH", _SCHEDULE, _WRITE, schedules.change),
    Route("DELETE", _SCHEDULE, _WRITE, schedules.delete),
    Route("GET", _CONFIGS, _READ, configs.index),
    Route("GET", _CONFIG, _READ, configs.show),
    Route("DELETE", _CONFIG, _WRITE, configs.delete),
    Route("GET", _SERVERS, _READ, servers.index),
    Route("POST", _SERVERS, _WRITE, enrollments.create_server),
    Route("GET", _SERVERS + "/{server}", _READ, servers.show),
    Route("PATCH", _SERVERS + "/{server}", _WRITE, servers.change),
    Route("DELETE", _SERVERS + "/{server}", _WRITE, servers.delete),
    Route("GET", _UPGRADES, _READ, agent_upgrades.index),
    Route("POST", _UPGRADES, _WRITE, agent_upgrades.create),
    Route("DELETE", _UPGRADES + "/{server}", _WRITE, agent_upgrades.cancel),
    Route("POST", _SERVERS + "/{server}/approve", _WRITE, enrollments.approve),
    Route("POST", _SERVERS + "/{server}/reject", _WRITE, enrollments.reject),
    Route("GET", _ENROLLMENTS, _READ, enrollments.index),
    Route("POST", _ENROLLMENTS, _WRITE, enrollments.create),
    Route("DELETE", _ENROLLMENTS + "/{enrollment}", _WRITE, enrollments.delete),
    Route("GET", "/v1/{project}/audit", _READ, audit.index),
    Route("GET", _RELAYS, _READ, relays.index),
    Route("POST", _RELAYS, _WRITE, relays.create),
    Route("DELETE", _RELAYS + "/{relay}", _WRITE, relays.delete),
    Route("GET", _HOOKS, _READ, hooks.index),
    Route("POST", _HOOKS, _WRITE, hooks.create, 2 * 1024 * 1024),
    Route("GET", _HOOKS + "/{hook_name}/{number}", _READ, hooks.show),
    Route("DELETE", _HOOKS + "/{hook_name}/{number}", _WRITE, hooks.delete),
    Route("GET", _CATALOG, _READ, catalog.index),
    Route("POST", _CATALOG, _WRITE, catalog.create),
    Route("GET", _CATALOG + "/{entry_name}/{number}", _READ, catalog.show),
    Route("DELETE", _CATALOG + "/{entry_name}/{number}", _WRITE, catalog.delete),
    Route("GET", _TYPES, _READ, types.index),
    Route("GET", _TYPES + "/{type_name}", _READ, types.show),
    Route("GET", _TYPES + "/{type_name}/template", _READ, types.template),
    Route("GET", _VERSIONS, _READ, types.versions),
    Route("GET", _VERSIONS + "/{version}/functions", _READ, types.functions),
    Route("POST", "/v1/{project}/validate", _READ, types.validate, _TEMPLATE_LIMIT, executor=TEMPLATES),
    Route("GET", "/v1/{project}/build_info", _READ, site.build_info),
    Route("GET", "/v1/{project}/services", SiteAdmin(), site.services),
    Route("GET", _STACKS, _READ, stacks.index),
    Route("POST", _STACKS, _WRITE, stacks.create, _TEMPLATE_LIMIT, executor=TEMPLATES),
    Route("GET", _STACKS + "/detail", _READ, stacks.index),
    Route("POST", _STACKS + "/preview", _READ, previews.create, _TEMPLATE_LIMIT, executor=TEMPLATES),
    # A member's right, because the previews are runs on servers.
    Route(
        "POST", _STACKS + "/server_previews", _WRITE, previews.create_on_servers, _TEMPLATE_LIMIT, executor=TEMPLATES
    ),
    *(
        Route(verb, _NAMED + rest, access, stack_lookup.redirect, _TEMPLATE_LIMIT)
        for verb, access in _REDIRECTED
        for rest in ("", *(f"/{segment}" for segment in _BELOW))
    ),
    Route("GET", _STACK, _READ, stacks.show),
    Route("PUT", _STACK, _WRITE, stacks.replace, _TEMPLATE_LIMIT, executor=TEMPLATES),
    Route("PATCH", _STACK, _WRITE, stacks.change, _TEMPLATE_LIMIT, executor=TEMPLATES),
    Route("DELETE", _STACK, _WRITE, stacks.delete),
    Route("PUT", _STACK + "/preview", _WRITE, previews.replace_it, _TEMPLATE_LIMIT, executor=TEMPLATES),
    Route("PATCH", _STACK + "/preview", _WRITE, previews.change, _TEMPLATE_LIMIT, executor=TEMPLATES),
    Route("POST", _STACK + "/actions", _WRITE, actions.act),
    Route("DELETE", _STACK + "/abandon", _WRITE, stacks.abandon),
    Route("GET", _STACK + "/export", _WRITE, stacks.export),
    Route("POST", _STACK + "/snapshots", _WRITE, snapshots.create),
    Route("GET", _STACK + "/snapshots", _READ, snapshots.index),
    Route("GET", _SNAPSHOT, _READ, snapshots.show),
    Route("DELETE", _SNAPSHOT, _WRITE, snapshots.delete),
    Route("POST", _SNAPSHOT + "/restore", _WRITE, snapshots.restore, executor=TEMPLATES),
    Route("GET", _STACK + "/template", _READ, stacks.template),
    Route("GET", _STACK + "/environment", _READ, stacks.environment),
    Route("GET", _STACK + "/files", _READ, stacks.files),
    Route("GET", _STACK + "/outputs", _READ, stacks.list_outputs),
    Route("GET", _STACK + "/outputs/{output_key}", _READ, stacks.show_output),
    Route("GET", _STACK + "/resources", _READ, resources.index),
    Route("GET", _RESOURCE, _READ, resources.show),
    Route("PATCH", _RESOURCE, _WRITE, resources.mark),
    Route("GET", _RESOURCE + "/metadata", OneResource(READER, AGENT), resources.metadata),
    Route("POST", _RESOURCE + "/signal", MaySignal(MEMBER, AGENT), resources.signal),
    Route("GET", _STACK + "/events", _READ, events.index),
    Route("GET", _RESOURCE + "/events", _READ, events.index),
    Route("GET", _RESOURCE + "/events/{event_id}", _READ, events.show),
]
