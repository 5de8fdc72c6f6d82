"""The tables, and nothing else. Alembic's migrations must lead to exactly this (a test compares)."""

from __future__ import annotations

from stoker.store.schema.base import metadata
from stoker.store.schema.identity import (
    application_credentials,
    assignments,
    ec2_credentials,
    projects,
    stack_users,
    tokens,
    users,
)
from stoker.store.schema.jobs import jobs
from stoker.store.schema.messaging import claims, messages, queues, subscriptions
from stoker.store.schema.objects import accounts, containers, lodgings, objects
from stoker.store.schema.orchestration import edges, events, resources, snapshots, stacks, steps
from stoker.store.schema.software import configs, deployments, documents, enrolments, logs, runs, servers
from stoker.store.schema.triggering import audit, schedules, selectors, trigger_targets, triggers

__all__ = [
    "accounts",
    "application_credentials",
    "assignments",
    "audit",
    "claims",
    "configs",
    "containers",
    "deployments",
    "documents",
    "ec2_credentials",
    "edges",
    "enrolments",
    "events",
    "jobs",
    "lodgings",
    "logs",
    "messages",
    "metadata",
    "objects",
    "projects",
    "queues",
    "resources",
    "runs",
    "schedules",
    "selectors",
    "servers",
    "snapshots",
    "stack_users",
    "stacks",
    "steps",
    "subscriptions",
    "tokens",
    "trigger_targets",
    "triggers",
    "users",
]
