-- The tables of a database, for SQLite and PostgreSQL. ``@serial`` and the like are what the databases write in
-- different ways (``fragments.py``). A change also needs a migration (``migrate.py``).
--
-- Times are integers: microseconds since 1970, in UTC. They are cheap to compare and the same on both databases. JSON is
-- stored as text that ``rows`` writes, so both databases contain the same bytes. Ids have at most 64 characters, names
-- 255. The database checks a reference with SET NULL at the commit, because a stack's session writes its resources last,
-- after the rows that they have created. It also states which columns are encrypted.

-- The version of the schema: the number of the last migration.
CREATE TABLE schema_version (
    version integer NOT NULL
);

-- ---- Stacks, their resources, plans and events ----

CREATE TABLE stacks (
    id varchar(64) NOT NULL PRIMARY KEY,
    name varchar(255) NOT NULL,
    project_id varchar(64) NOT NULL,
    username varchar(255) NOT NULL,
    user_project_id varchar(64) NOT NULL,
    action varchar(64) NOT NULL,
    status varchar(64) NOT NULL,
    reason text NOT NULL,
    description text NOT NULL,
    version varchar(64) NOT NULL,
    parameters text NOT NULL,
    outputs text NOT NULL,
    tags text NOT NULL,
    -- Queues that receive the stack's events.
    event_sinks text NOT NULL,
    timeout_mins integer,
    disable_rollback boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint,
    deleted_at bigint,
    traversal varchar(64) NOT NULL,
    phase varchar(64) NOT NULL,
    remaining integer NOT NULL,
    failure text,
    root_id varchar(64) NOT NULL,
    parent_id varchar(64),
    parent_resource_id varchar(64),
    parent_resource varchar(255),
    depth integer NOT NULL,
    -- ``model.stack.Source`` of the current or last operation, and of the last one that completed.
    source text NOT NULL,
    previous text
);
-- For the deletion of the records of deleted stacks.
CREATE INDEX ix_stacks_deleted_at ON stacks (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX ix_stacks_parent_id ON stacks (parent_id);
CREATE INDEX ix_stacks_project_id_created_at ON stacks (project_id, created_at);
CREATE INDEX ix_stacks_root_id ON stacks (root_id);
CREATE UNIQUE INDEX uq_stacks_live_name ON stacks (project_id, name) WHERE deleted_at IS NULL;

CREATE TABLE resources (
    id varchar(64) NOT NULL PRIMARY KEY,
    stack_id varchar(64) NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    name varchar(255) NOT NULL,
    type varchar(255) NOT NULL,
    action varchar(64) NOT NULL,
    status varchar(64) NOT NULL,
    reason text NOT NULL,
    physical_id text,
    definition text NOT NULL,
    properties text NOT NULL,
    metadata text NOT NULL,
    data text NOT NULL,
    requires text NOT NULL,
    current boolean NOT NULL,
    -- The breakpoint that the resource waits at.
    hook varchar(64),
    -- The operation of the stack whose step ends with the action in progress.
    operation varchar(64),
    created_at bigint NOT NULL,
    updated_at bigint
);
CREATE INDEX ix_resources_stack_id_name ON resources (stack_id, name);

-- The state of a stack at one time, to be restored.
CREATE TABLE snapshots (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    stack_id varchar(64) NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    name varchar(255),
    status varchar(64) NOT NULL,
    reason text NOT NULL,
    data text NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX ix_snapshots_stack_id_seq ON snapshots (stack_id, seq);

CREATE TABLE steps (
    stack_id varchar(64) NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    key varchar(255) NOT NULL,
    waiting integer NOT NULL,
    state varchar(64) NOT NULL,
    definition text,
    PRIMARY KEY (stack_id, key)
);

-- The step ``key`` waits for the step ``need``.
CREATE TABLE edges (
    stack_id varchar(64) NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    need varchar(255) NOT NULL,
    key varchar(255) NOT NULL,
    PRIMARY KEY (stack_id, need, key)
);

CREATE TABLE events (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    stack_id varchar(64) NOT NULL REFERENCES stacks (id) ON DELETE CASCADE,
    resource_name varchar(255) NOT NULL,
    resource_type varchar(255) NOT NULL,
    physical_id text,
    action varchar(64) NOT NULL,
    status varchar(64) NOT NULL,
    reason text NOT NULL,
    properties text NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX ix_events_stack_id_seq ON events (stack_id, seq);


-- ---- Triggers, schedules, selectors and the audit log ----

CREATE TABLE triggers (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    project_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    action varchar(255) NOT NULL,
    -- The source that the request named: a stack's resource, a deployment or a config.
    source text NOT NULL,
    -- The stack that contains the source, if the source is a resource.
    stack_id varchar(64),
    -- A copy of the source's config at the time of the trigger. Targets that start later run the same content.
    config text NOT NULL,
    -- Input values that override those of the source.
    input_values text NOT NULL,
    -- Signal transport, timeout, limits of concurrent and failed targets.
    options text NOT NULL,
    requested_by varchar(255),
    schedule_id varchar(64),
    status varchar(64) NOT NULL,
    status_reason text NOT NULL,
    -- The number of targets, in total and by status.
    total integer NOT NULL,
    queued integer NOT NULL,
    running integer NOT NULL,
    complete integer NOT NULL,
    failed integer NOT NULL,
    cancelled integer NOT NULL,
    -- The number of ended targets whose runs did, or did not, change their servers.
    changed integer NOT NULL,
    unchanged integer NOT NULL,
    -- The number of changes of its targets.
    revision integer NOT NULL DEFAULT 0,
    created_at bigint NOT NULL,
    ended_at bigint
);
CREATE INDEX ix_triggers_project_id_seq ON triggers (project_id, seq);
CREATE INDEX ix_triggers_project_id_status ON triggers (project_id, status, ended_at);
CREATE INDEX ix_triggers_schedule_id_seq ON triggers (schedule_id, seq);

-- The targets of a trigger, in order. A target has a deployment when it starts.
CREATE TABLE trigger_targets (
    trigger_id varchar(64) NOT NULL REFERENCES triggers (id) ON DELETE CASCADE,
    position integer NOT NULL,
    server_id varchar(64) NOT NULL,
    server_name varchar(255) NOT NULL,
    -- The name of the target's deployment, and its input values before the trigger's override them.
    name varchar(255) NOT NULL,
    input_values text NOT NULL,
    -- The path of the resource whose deployment the target repeats.
    resource_name text,
    -- Whether an earlier target of the server has not ended yet.
    blocked boolean NOT NULL,
    status varchar(64) NOT NULL,
    status_reason text NOT NULL,
    -- Whether the run changed the server; NULL: not known.
    changed boolean,
    deployment_id varchar(64),
    -- The exit code of the run, and the digest of its output without what differs from server to server.
    exit_code varchar(64),
    digest varchar(64),
    -- When the status last changed.
    updated_at bigint,
    -- The trigger's revision of the last change.
    revision integer NOT NULL DEFAULT 0,
    PRIMARY KEY (trigger_id, position)
);
CREATE INDEX ix_trigger_targets_deployment_id ON trigger_targets (deployment_id);
CREATE INDEX ix_trigger_targets_trigger_id_revision_position ON trigger_targets (trigger_id, revision, position);
CREATE INDEX ix_trigger_targets_trigger_id_status_position ON trigger_targets (trigger_id, status, position);
CREATE INDEX ix_trigger_targets_startable ON trigger_targets (trigger_id, status, position)
    WHERE status = 'QUEUED' AND NOT blocked;

CREATE TABLE schedules (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    project_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    -- The body of a request that creates the trigger.
    body text NOT NULL,
    -- Names of inputs in the body whose values are secret.
    secret text NOT NULL,
    -- The config that the body names, if any: it must not be deleted.
    config_id varchar(64),
    -- A cron expression in a time zone; NULL for a single time.
    cron varchar(255),
    at bigint,
    timezone varchar(64) NOT NULL,
    -- Whether each server waits for its own maintenance window.
    require_window boolean NOT NULL,
    -- What happens when a scheduled time passes while no process is running: RUN or SKIP.
    misfire_policy varchar(64) NOT NULL,
    -- What happens to runs of earlier times that have not started when the next time comes: REPLACE or QUEUE.
    overlap_policy varchar(64) NOT NULL DEFAULT 'REPLACE',
    enabled boolean NOT NULL,
    requested_by varchar(255),
    next_at bigint,
    last_at bigint,
    last_trigger_id varchar(64),
    last_error text,
    run_count integer NOT NULL,
    missed_count integer NOT NULL,
    created_at bigint NOT NULL,
    UNIQUE (project_id, name)
);
CREATE INDEX ix_schedules_config_id ON schedules (config_id);

-- Groups whose members are the servers that have these labels and match the text.
CREATE TABLE selectors (
    resource_id varchar(64) NOT NULL PRIMARY KEY,
    project_id varchar(64) NOT NULL,
    labels text NOT NULL,
    text text,
    -- The stack whose operation must end before the group may change.
    waits_for varchar(64)
);
CREATE INDEX ix_selectors_project_id ON selectors (project_id);
CREATE INDEX ix_selectors_waits_for ON selectors (waits_for);

-- What users did, what ran on servers, and what was refused. Names, because entries outlive the objects.
CREATE TABLE audit (
    seq @serial,
    project_id varchar(64) NOT NULL,
    at bigint NOT NULL,
    actor varchar(255),
    action varchar(255) NOT NULL,
    outcome varchar(64) NOT NULL,
    server_id varchar(64),
    deployment_id varchar(64),
    stack_id varchar(64),
    reason text NOT NULL,
    server_name varchar(255),
    stack_name varchar(255),
    resource_name varchar(255),
    config_name varchar(255)
);
CREATE INDEX ix_audit_project_id_seq ON audit (project_id, seq);
CREATE INDEX ix_audit_server_name ON audit (project_id, server_name, seq);


-- ---- Servers, configs, deployments, runs and their output ----

CREATE TABLE servers (
    id varchar(64) NOT NULL PRIMARY KEY,
    project_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    kind varchar(64) NOT NULL,
    stack_id varchar(64) REFERENCES stacks (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    resource_id varchar(64) REFERENCES resources (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    resource_name varchar(255),
    key_generation integer NOT NULL,
    agent_access varchar(64) NOT NULL,
    -- The enrollment may be deleted before the server.
    enrollment_id varchar(64),
    instance text,
    machine text,
    last_seen bigint,
    -- The agent on the server, as its resource declares it; NULL: the default of the server's kind.
    agent varchar(64),
    agent_version text,
    hooks text NOT NULL,
    -- The modes of runs that the agent knows besides applying a config.
    modes text NOT NULL,
    hostname text,
    -- The machine chose the name itself.
    is_self_named boolean NOT NULL DEFAULT false,
    -- Labels, which selectors match.
    labels text NOT NULL,
    -- Who may deploy to the server, and when (``deployments.policy``); NULL: the default policy of the site.
    policy text,
    -- Of an enrolled server: the resources that represent it, each by its id with the id of the root stack of its tree.
    stands_for text NOT NULL,
    created_at bigint NOT NULL
);
-- Ten thousand machines may use one enrollment.
CREATE INDEX ix_servers_enrollment_id_instance ON servers (enrollment_id, instance);
CREATE INDEX ix_servers_enrollment_id_machine ON servers (enrollment_id, machine);
-- For selectors (``@has_labels``).
@only_postgresql CREATE INDEX ix_servers_labels ON servers USING gin ((labels::jsonb));
CREATE INDEX ix_servers_project_id_created_at_id ON servers (project_id, created_at, id);
CREATE INDEX ix_servers_project_id_name ON servers (project_id, name);
CREATE INDEX ix_servers_resource_id ON servers (resource_id);
CREATE INDEX ix_servers_stack_id ON servers (stack_id);

CREATE TABLE enrollments (
    id varchar(64) NOT NULL PRIMARY KEY,
    project_id varchar(64) NOT NULL,
    token_hash varchar(64) NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    created_by varchar(255),
    expires_at bigint NOT NULL,
    -- NULL: every machine that redeems the token becomes a new server.
    server_id varchar(64) REFERENCES servers (id) ON DELETE CASCADE,
    "limit" integer NOT NULL,
    uses integer NOT NULL,
    name_from varchar(64) NOT NULL,
    -- A pattern: stacks may use the names of new servers that match it.
    names varchar(255),
    labels text NOT NULL,
    needs_approval boolean NOT NULL,
    reruns boolean NOT NULL
);
CREATE INDEX ix_enrollments_project_id ON enrollments (project_id);
CREATE INDEX ix_enrollments_server_id ON enrollments (server_id);

CREATE TABLE relays (
    id varchar(64) NOT NULL PRIMARY KEY,
    project_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    url text NOT NULL,
    ca text,
    key_hash varchar(64) NOT NULL,
    created_at bigint NOT NULL,
    created_by varchar(255),
    last_seen bigint,
    agents integer NOT NULL,
    version varchar(64)
);
CREATE UNIQUE INDEX uq_relays_project_id_name ON relays (project_id, name);

-- What the agent of a server reports about its machine.
CREATE TABLE server_facts (
    server_id varchar(64) NOT NULL PRIMARY KEY REFERENCES servers (id) ON DELETE CASCADE,
    os text,
    address text,
    problem text,
    facts text NOT NULL,
    reported_at bigint NOT NULL
);
CREATE INDEX ix_server_facts_problem ON server_facts (server_id) WHERE problem IS NOT NULL;

-- One row for each server id that a deployment ever named, whether Stoker knows the server or not.
CREATE TABLE documents (
    server_id varchar(64) NOT NULL PRIMARY KEY,
    revision bigint NOT NULL,
    -- The resource whose transport publishes the document; NULL: agents only poll it.
    channel varchar(64),
    -- Digest of the last published document.
    published varchar(64),
    -- The signed revision of the published document: microseconds since 1970, never decreasing.
    signed_revision bigint NOT NULL DEFAULT 0
);

CREATE TABLE configs (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    project_id varchar(64) NOT NULL,
    name varchar(255),
    "group" varchar(255),
    -- The config is a deployment's copy, with the name of the source config.
    is_derived boolean NOT NULL,
    created_at bigint NOT NULL,
    -- Stoker created the config for the run of a deployment, and deletes it with the last deployment that runs it.
    is_owned boolean NOT NULL,
    -- The config as every API serves it, rendered once; documents are joined from these.
    body text NOT NULL
);
CREATE INDEX ix_configs_project_id_seq ON configs (project_id, seq);

CREATE TABLE deployments (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    project_id varchar(64) NOT NULL,
    server_id varchar(64) NOT NULL,
    config_id varchar(64) NOT NULL,
    action varchar(255),
    status varchar(255),
    status_reason text,
    input_values text NOT NULL,
    output_values text NOT NULL,
    signal_transport varchar(64),
    resource_id varchar(64) REFERENCES resources (id) ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED,
    stack_id varchar(64),
    -- The trigger that started the deployment, if any.
    trigger_id varchar(64),
    -- Why no document contains the deployment: it waits for a window (WINDOW) or must not run any more (CANCELLED,
    -- INTERRUPTED).
    held_by varchar(64),
    -- The agent has the run and has to stop it. False again when the agent has confirmed the stop.
    cancelling boolean NOT NULL,
    -- The server belongs to another project, whose policy admits the deployment.
    admitted boolean NOT NULL,
    -- What the hook does in the current run: preview or undo; NULL: it applies the config.
    mode varchar(64),
    -- A client has deleted the deployment, which disappears when its run has undone it.
    removing boolean NOT NULL,
    -- Whether the last run changed the server, and how many items; NULL: not known.
    changed boolean,
    changed_items integer NOT NULL,
    changes text NOT NULL DEFAULT '[]',
    created_at bigint NOT NULL,
    updated_at bigint,
    -- The state of the current run, whose result is above. ``run_number`` counts the deployment's runs, from 1.
    run_number integer NOT NULL DEFAULT 1,
    -- ``model.deployment.RunState``.
    state varchar(64) NOT NULL DEFAULT 'DONE',
    queued_at bigint,
    sent_at bigint,
    -- The transport that delivered the run.
    channel varchar(64),
    started_at bigint,
    ended_at bigint,
    -- The agent's last report, and its time.
    percent integer,
    message text,
    last_heartbeat_at bigint,
    status_code text,
    -- Name of the user who requested the run; NULL: the action of a stack started it.
    requested_by varchar(255),
    -- Bytes that the run has written, stored or not.
    stdout_bytes bigint NOT NULL DEFAULT 0,
    stderr_bytes bigint NOT NULL DEFAULT 0,
    -- The last bytes, encrypted, if they may be the beginning of a secret: no chunk contains them yet.
    stdout_held @bytes,
    stderr_held @bytes
);
CREATE INDEX ix_deployments_config_id ON deployments (config_id);
CREATE INDEX ix_deployments_project_id_seq ON deployments (project_id, seq);
-- For the deletion of a resource, which searches its deployments. Deployments of REST clients have no resource.
CREATE INDEX ix_deployments_resource_id ON deployments (resource_id) WHERE resource_id IS NOT NULL;
-- Failures of clients' deployments, which the overview counts. A query uses the index only with the same conditions.
CREATE INDEX ix_deployments_failed ON deployments (project_id, ended_at)
    WHERE status = 'FAILED' AND resource_id IS NULL AND trigger_id IS NULL;
CREATE INDEX ix_deployments_server_id_seq ON deployments (server_id, seq);
-- Deployments that a server's own agent may have to run, report or stop. All others have ended, and their number grows
-- from year to year. A query uses the index only if it contains the same condition.
CREATE INDEX ix_deployments_to_run ON deployments (server_id)
    WHERE (cancelling OR status = 'IN_PROGRESS' OR signal_transport = 'NO_SIGNAL');

-- Clients' configs that a server may have run for a deployment that has another config now, or was deleted. Agents run
-- each config once.
CREATE TABLE past_configs (
    config_id varchar(64) NOT NULL REFERENCES configs (id) ON DELETE CASCADE,
    server_id varchar(64) NOT NULL,
    PRIMARY KEY (config_id, server_id)
);

-- The earlier runs of deployments, as they were when another one started. They never change.
CREATE TABLE runs (
    deployment_id varchar(64) NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    config_id varchar(64) NOT NULL,
    number integer NOT NULL,
    action varchar(255),
    mode varchar(64),
    state varchar(64) NOT NULL,
    percent integer,
    message text,
    last_heartbeat_at bigint,
    queued_at bigint NOT NULL,
    sent_at bigint,
    channel varchar(64),
    started_at bigint,
    ended_at bigint,
    status varchar(255),
    status_code text,
    status_reason text,
    requested_by varchar(255),
    input_values text NOT NULL,
    -- Without the output in the log.
    output_values text NOT NULL,
    changed boolean,
    changes text NOT NULL,
    stdout_bytes bigint NOT NULL,
    stderr_bytes bigint NOT NULL,
    PRIMARY KEY (deployment_id, config_id)
);
CREATE INDEX ix_runs_ended_at ON runs (ended_at);

-- Deployments whose server is compared with what they left: the settings and the last result.
CREATE TABLE checks (
    deployment_id varchar(64) NOT NULL PRIMARY KEY REFERENCES deployments (id) ON DELETE CASCADE,
    server_id varchar(64) NOT NULL,
    -- The derived config that the result is about.
    config_id varchar(64) NOT NULL,
    -- Seconds; NULL: checks run on request only.
    check_interval integer,
    -- Whether drift starts another run.
    enforce boolean NOT NULL,
    -- ``model.deployment.CheckState``.
    state varchar(64) NOT NULL,
    since bigint NOT NULL,
    checked_at bigint,
    -- When a user requested the check that the agent has not answered yet.
    requested_at bigint,
    drifted_at bigint,
    reason text NOT NULL,
    changes text NOT NULL,
    remediations integer NOT NULL,
    remediate_at bigint
);
CREATE INDEX ix_checks_server_id ON checks (server_id);

CREATE TABLE logs (
    seq @serial,
    deployment_id varchar(64) NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
    config_id varchar(64) NOT NULL,
    stream varchar(64) NOT NULL,
    "offset" bigint NOT NULL,
    data @bytes NOT NULL,
    at bigint NOT NULL
);
CREATE INDEX ix_logs_at ON logs (at);
CREATE INDEX ix_logs_deployment_id_seq ON logs (deployment_id, seq);

-- Stored hooks and catalog entries, which never change.
CREATE TABLE artifacts (
    id varchar(64) NOT NULL PRIMARY KEY,
    -- Empty: every project of the site can read the artifact.
    project_id varchar(64) NOT NULL,
    -- ``model.artifact.ArtifactKind``.
    kind varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    version integer NOT NULL,
    sha256 varchar(64) NOT NULL,
    size integer NOT NULL,
    description text NOT NULL,
    created_by varchar(255),
    created_at bigint NOT NULL,
    content @bytes NOT NULL
);
CREATE INDEX ix_artifacts_sha256 ON artifacts (sha256);
CREATE UNIQUE INDEX uq_artifacts_kind_project_id_name_version ON artifacts (kind, project_id, name, version);


-- ---- Jobs, the queue of both databases ----

-- While the state is RUNNING, ``owner`` is the process that runs the job, and ``leased_until`` the time until which the
-- process is considered alive. While it is WAITING, both are NULL.
CREATE TABLE jobs (
    seq @serial,
    kind varchar(64) NOT NULL,
    key varchar(255) NOT NULL,
    args text NOT NULL,
    due bigint NOT NULL,
    attempts integer NOT NULL,
    last_error text,
    state varchar(16) NOT NULL,
    owner varchar(64),
    leased_until bigint
);
-- For taking jobs: contains the waiting ones in the order in which they are taken.
CREATE INDEX ix_jobs_due ON jobs (due, seq) WHERE state = 'WAITING';
CREATE INDEX ix_jobs_key_kind ON jobs (key, kind);
-- At most one job of a kind and key runs at a time.
CREATE UNIQUE INDEX uq_jobs_running ON jobs (kind, key) WHERE state = 'RUNNING';


-- ---- The messaging service: queues, messages and subscriptions ----

CREATE TABLE queues (
    id varchar(64) NOT NULL PRIMARY KEY,
    project_id varchar(64) NOT NULL,
    name varchar(64) NOT NULL,
    metadata text NOT NULL,
    -- The resource or server that Stoker created the queue for; NULL: a user created it.
    owner varchar(255),
    created_at bigint NOT NULL,
    UNIQUE (project_id, name)
);

-- Messages refer to their queue by id: a later queue with the same name is a different one.
CREATE TABLE messages (
    -- After the last message is deleted, its position must not be reused: readers continue after it.
    seq @serial_never_reused,
    id varchar(64) NOT NULL UNIQUE,
    queue_id varchar(64) NOT NULL,
    -- The Client-ID of the poster; NULL: Stoker posted the message.
    client_id varchar(64),
    body text NOT NULL,
    checksum varchar(64) NOT NULL,
    -- Seconds, for display. ``expires_at`` limits the message's life.
    ttl integer NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    delayed_until bigint NOT NULL
);
CREATE INDEX ix_messages_expires_at ON messages (expires_at);
CREATE INDEX ix_messages_queue_id_seq ON messages (queue_id, seq);

CREATE TABLE subscriptions (
    seq @serial,
    id varchar(64) NOT NULL UNIQUE,
    queue_id varchar(64) NOT NULL,
    subscriber text NOT NULL,
    -- SHA-256 of the subscriber, which may be encrypted.
    digest varchar(64) NOT NULL,
    ttl bigint NOT NULL,
    options text NOT NULL,
    renewed_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    UNIQUE (queue_id, digest)
);
CREATE INDEX ix_subscriptions_expires_at ON subscriptions (expires_at);
CREATE INDEX ix_subscriptions_queue_id_seq ON subscriptions (queue_id, seq);


-- ---- The object store, and remote objects in external services ----

-- Each project has one account.
CREATE TABLE accounts (
    id varchar(64) NOT NULL PRIMARY KEY,
    headers text NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE containers (
    account varchar(64) NOT NULL,
    name text @bytewise NOT NULL,
    -- The resource or server that Stoker created the container for.
    owner varchar(64),
    headers text NOT NULL,
    objects bigint NOT NULL,
    bytes bigint NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (account, name)
);

CREATE TABLE objects (
    account varchar(64) NOT NULL,
    container text @bytewise NOT NULL,
    name text @bytewise NOT NULL,
    etag varchar(64) NOT NULL,
    size bigint NOT NULL,
    content_type text NOT NULL,
    headers text NOT NULL,
    modified_at bigint NOT NULL,
    -- Whether ``data`` is encrypted: the data of documents and results, which may contain secrets.
    encrypted boolean NOT NULL,
    -- The last column, so that SQLite reads the others without reading this one.
    data @bytes NOT NULL,
    PRIMARY KEY (account, container, name)
);

-- Objects and queues that Stoker has created, or has to create, in an external Swift or Zaqar.
CREATE TABLE remote_objects (
    id varchar(64) NOT NULL PRIMARY KEY,
    kind varchar(64) NOT NULL,
    name varchar(512) NOT NULL,
    project_id varchar(64) NOT NULL,
    resource_id varchar(64) NOT NULL,
    -- The desired content as JSON; NULL: no content, but a place for results.
    body text,
    -- The desired generation counts requests; the observed generation is the last one that was applied.
    desired_generation bigint NOT NULL,
    observed_generation bigint NOT NULL,
    is_removed boolean NOT NULL,
    -- When to poll for a result next, and the pause between polls in microseconds; NULL: no result is expected.
    poll_at bigint,
    poll_interval bigint NOT NULL,
    -- Until when signals without a run are expected.
    awaited_until bigint,
    -- The HTTP method of the agent's signed URL; NULL: no agent has one.
    signed_method varchar(16),
    -- The identifier of the last processed result, in the form of the object's kind; for versions, of all results.
    last_result text,
    -- Data from the service: a signed URL, a subscription.
    details text NOT NULL,
    UNIQUE (kind, name)
);
CREATE INDEX ix_remote_objects_kind_poll_at ON remote_objects (kind, poll_at);
CREATE INDEX ix_remote_objects_resource_id ON remote_objects (resource_id);


-- ---- The identity service: projects, users, roles and credentials ----

CREATE TABLE projects (
    id varchar(64) NOT NULL PRIMARY KEY,
    name varchar(255) NOT NULL,
    domain_id varchar(64) NOT NULL,
    description text NOT NULL,
    enabled boolean NOT NULL,
    UNIQUE (domain_id, name)
);

CREATE TABLE users (
    id varchar(64) NOT NULL PRIMARY KEY,
    name varchar(255) NOT NULL,
    domain_id varchar(64) NOT NULL,
    password_hash text NOT NULL,
    default_project_id varchar(64),
    enabled boolean NOT NULL,
    description text,
    email varchar(255),
    UNIQUE (domain_id, name)
);

CREATE TABLE assignments (
    user_id varchar(64) NOT NULL,
    -- Empty: the whole site, for which the administrator's role is the only one.
    project_id varchar(64) NOT NULL,
    role varchar(64) NOT NULL,
    PRIMARY KEY (user_id, project_id, role)
);

CREATE TABLE tokens (
    hash varchar(64) NOT NULL PRIMARY KEY,
    user_id varchar(64) NOT NULL,
    project_id varchar(64),
    issued_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    -- The credential that created the token. It limits the token's roles, and its deletion revokes the token.
    application_credential_id varchar(64),
    -- Valid for the whole site, not for a project.
    system boolean NOT NULL,
    -- Hash of the token that this one was created from. Revoking that token revokes this one.
    parent_hash varchar(64),
    -- Keystone's names of the authentication methods.
    methods text NOT NULL
);
CREATE INDEX ix_tokens_expires_at ON tokens (expires_at);
CREATE INDEX ix_tokens_parent_hash ON tokens (parent_hash);
CREATE INDEX ix_tokens_user_id ON tokens (user_id);

-- One-time codes of the console that were used. A row is deleted after its code has expired.
CREATE TABLE used_codes (
    hash varchar(64) NOT NULL PRIMARY KEY,
    expires_at bigint NOT NULL
);
CREATE INDEX ix_used_codes_expires_at ON used_codes (expires_at);

CREATE TABLE application_credentials (
    id varchar(64) NOT NULL PRIMARY KEY,
    user_id varchar(64) NOT NULL,
    project_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    description text NOT NULL,
    secret_hash text NOT NULL,
    roles text NOT NULL,
    unrestricted boolean NOT NULL,
    expires_at bigint,
    UNIQUE (user_id, name)
);

-- Users that Stoker creates at a Keystone, one for each resource. A row is deleted after its user.
CREATE TABLE stack_users (
    resource_id varchar(64) NOT NULL PRIMARY KEY,
    root_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    -- NULL until the user exists.
    user_id varchar(64) UNIQUE,
    user_project_id varchar(64),
    domain_id varchar(64),
    -- The desired and the actual state of the user.
    wanted varchar(64) NOT NULL,
    state varchar(64) NOT NULL
);
CREATE INDEX ix_stack_users_root_id ON stack_users (root_id);


-- ---- Cloud objects and the credentials for them ----

-- Objects of a cloud that belong to resources. A row remains until its object is deleted, even if its stack is.
CREATE TABLE cloud_objects (
    -- The id of the resource.
    id varchar(64) NOT NULL PRIMARY KEY,
    kind varchar(64) NOT NULL,
    project_id varchar(64) NOT NULL,
    root_id varchar(64) NOT NULL,
    name varchar(255) NOT NULL,
    specification text NOT NULL,
    action varchar(64) NOT NULL,
    arguments text NOT NULL,
    status varchar(64) NOT NULL,
    reason text NOT NULL,
    -- The desired generation counts requests; the observed generation is the last one that was applied.
    desired_generation bigint NOT NULL,
    observed_generation bigint NOT NULL,
    -- NULL until the cloud has the object.
    external_id varchar(255),
    observed text NOT NULL,
    error_type varchar(255) NOT NULL,
    progress text NOT NULL,
    -- The list of the cloud in which the object is polled; NULL: the object is not polled.
    awaits varchar(64),
    awaited_since bigint
);
CREATE INDEX ix_cloud_objects_awaits ON cloud_objects (awaits);
CREATE INDEX ix_cloud_objects_external_id ON cloud_objects (external_id);
CREATE INDEX ix_cloud_objects_project_id_kind_name ON cloud_objects (project_id, kind, name);
CREATE INDEX ix_cloud_objects_root_id ON cloud_objects (root_id);

-- Objects that stay at the cloud without a row of cloud_objects, by the ids of their resources (deletion_policy Retain).
-- A sweep leaves them. No row is purged by its age, because the next sweep would delete the object.
CREATE TABLE retained_objects (
    id varchar(64) NOT NULL PRIMARY KEY
);

-- Which credential Stoker uses at Keystone for the owner of a tree of stacks.
CREATE TABLE delegations (
    id varchar(64) NOT NULL PRIMARY KEY,
    root_id varchar(64) NOT NULL,
    credential_id varchar(64) NOT NULL,
    -- A job revokes the delegation: the stack is deleted with its objects, or its transaction did not commit.
    is_ended boolean NOT NULL
);
CREATE INDEX ix_delegations_credential_id ON delegations (credential_id);
CREATE INDEX ix_delegations_root_id ON delegations (root_id);

-- Trusts and application credentials by which Stoker acts for users at Keystone. Several stacks may share one.
CREATE TABLE cloud_credentials (
    id varchar(64) NOT NULL PRIMARY KEY,
    -- TRUST or APPLICATION_CREDENTIAL.
    way varchar(64) NOT NULL,
    project_id varchar(64) NOT NULL,
    user_id varchar(64) NOT NULL,
    -- The ids of its roles at Keystone.
    roles text NOT NULL,
    -- The id of the trust, empty before Keystone has answered, or the secret of the application credential.
    secret text NOT NULL,
    -- A job deletes the credential, so no other stack may use it.
    is_ended boolean NOT NULL
);
CREATE INDEX ix_cloud_credentials_user_id ON cloud_credentials (user_id);


-- ---- Properties that all processes of the site share ----

CREATE TABLE site_properties (
    name varchar(64) NOT NULL PRIMARY KEY,
    value text NOT NULL
);
