"""Definitions of all tables. The migrations must produce exactly this schema, which a test verifies."""

from __future__ import annotations

from stoker.store.schema.base import metadata
from stoker.store.schema.cloud import cloud_credentials, cloud_objects, cloud_refreshes, delegations
from stoker.store.schema.identity import (
    application_credentials,
    assignments,
    ec2_credentials,
    projects,
    stack_users,
    system_assignments,
    tokens,
    users,
)
from stoker.store.schema.jobs import jobs
from stoker.store.schema.messaging import claims, messages, queues, subscriptions
from stoker.store.schema.objects import accounts, containers, objects, remote_objects
from stoker.store.schema.orchestration import edges, events, resources, snapshots, stacks, steps
from stoker.store.schema.site import site_properties
from stoker.store.schema.software import (
    agent_upgrades,
    artifacts,
    checks,
    configs,
    deployments,
    documents,
    enrollments,
    logs,
    relays,
    runs,
    server_facts,
    servers,
)
from stoker.store.schema.trigger_tables import audit, schedules, selectors, trigger_targets, triggers

__all__ = [
    "accounts",
    "agent_upgrades",
    "application_credentials",
    "artifacts",
    "assignments",
    "audit",
    "checks",
    "claims",
    "cloud_credentials",
    "cloud_objects",
    "cloud_refreshes",
    "configs",
    "containers",
    "delegations",
    "deployments",
    "documents",
    "ec2_credentials",
    "edges",
    "enrollments",
    "events",
    "jobs",
    "logs",
    "messages",
    "metadata",
    "objects",
    "projects",
    "queues",
    "relays",
    "remote_objects",
    "resources",
    "runs",
    "schedules",
    "selectors",
    "server_facts",
    "servers",
    "site_properties",
    "snapshots",
    "stack_users",
    "stacks",
    "steps",
    "subscriptions",
    "system_assignments",
    "tokens",
    "trigger_targets",
    "triggers",
    "users",
]
