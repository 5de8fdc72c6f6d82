"""The settings grouped by subject, for the help of ``stoker serve``."""

from __future__ import annotations

from collections.abc import Mapping

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Addresses and TLS": (
        "host", "port", "workers", "public_url", "tls_cert", "tls_key", "tls_ca", "insecure_http", "proxy_addresses",
    ),
    "State, database and secrets": (
        "state_dir", "database", "database_connections", "database_direct_url", "notifier", "secret_key",
        "secret_key_file", "encryption_keys", "encryption_keys_file", "clouds_yaml", "log_level", "log_requests",
        "metrics_token", "metrics_token_file",
    ),
    "Servers and deployments": (
        "cloud", "deployment_policy", "delivered_hooks", "heartbeat_seconds", "agent_update",
        "default_software_config_transport",
        "default_deployment_signal_transport", "require_signed_transports", "local_servers", "local_servers_unsafe",
    ),
    "Limits of projects": (
        "max_stacks_per_project", "max_resources_per_stack", "max_software_configs", "max_software_deployments",
        "max_template_values", "stack_action_timeout", "hidden_stack_tags",
    ),
    "Logs, audit and retention": (
        "max_log_bytes", "log_retention_days", "run_retention_days", "event_retention_days", "trigger_retention_days",
        "deleted_stack_retention_days", "audit_retention_days",
    ),
    "Connections": (
        "max_connections", "max_connections_per_address", "max_streams_per_token", "max_streams_per_project",
        "max_request_head", "head_timeout", "body_timeout", "keep_alive_timeout",
    ),
    "Users and logins": (
        "token_hours", "min_password_length", "max_login_failures", "identity_mode", "keystone_auth_url",
        "keystone_cloud", "keystone_user", "keystone_password", "keystone_password_file", "keystone_project",
        "keystone_domain", "keystone_timeout", "keystone_cache_seconds", "stack_delegation", "trust_roles",
        "stack_user_domain", "stack_domain_admin", "stack_domain_admin_password", "stack_domain_admin_password_file",
    ),
    "Object store, messaging and other regions": (
        "object_store", "object_store_cloud", "object_store_auth_url", "object_store_user", "object_store_key",
        "object_store_key_file", "max_object_size", "tempurl_sha1", "messaging", "messaging_cloud",
        "signal_webhooks", "webhook_networks", "require_confirmation", "remote_heats",
    ),
}  # fmt: skip
