-- Format 1: the whole store. No kind's vocabulary is here: statuses, codes and fields are data of the policies.
--
-- Times are UTC milliseconds since 1970 and end in _at_ms; lengths end in _ms. JSON is text that json_valid accepts, and
-- NULL where it would be empty. Argument vectors and paths are bytes. Every index below costs each write: a creation
-- writes entity_ids and its index, entities and four of its indexes, transitions and its index, and one row of
-- components; tags, links, keys, runtimes and works are written only when there are any.

-- Which migrations were applied. `PRAGMA user_version` repeats the newest, so that opening reads no table.
CREATE TABLE schema_version (
    version       INTEGER PRIMARY KEY,   -- the number of the migration
    applied_at_ms INTEGER NOT NULL       -- when
) STRICT;

-- The one row that says which store this is.
CREATE TABLE store_info (
    one           INTEGER PRIMARY KEY CONSTRAINT store_info_is_one_row CHECK (one = 1), -- there is no second row
    name          TEXT NOT NULL          -- random; the first part of every event id made here
                  CONSTRAINT store_info_name_has_8_characters CHECK (length(name) = 8),
    created_at_ms INTEGER NOT NULL       -- when the store was made
) STRICT;

-- Components ever installed. A removed one loses its contents and keeps its row: history still names its digest.
CREATE TABLE components (
    component       INTEGER PRIMARY KEY, -- its number, to which entities and history rows point
    digest          TEXT NOT NULL UNIQUE -- SHA-256 in hexadecimal
                    CONSTRAINT components_digest_is_given CHECK (digest <> ''),
    kind            TEXT NOT NULL        -- the kind it governs
                    CONSTRAINT components_kind_is_given CHECK (kind <> ''),
    name            TEXT NOT NULL,       -- its name
    version         TEXT NOT NULL,       -- its version, a label
    source          TEXT NOT NULL,       -- where it came from: bundled or installed
    exports         TEXT NOT NULL        -- JSON array of exported interfaces
                    CONSTRAINT components_exports_are_json CHECK (json_valid(exports)),
    size_bytes      INTEGER NOT NULL,    -- size of the component
    installed_at_ms INTEGER NOT NULL,    -- when it was installed, the last time
    in_use          INTEGER NOT NULL DEFAULT 0 -- how many entities are pinned to it, kept with every creation and move
                    CONSTRAINT components_in_use_is_a_count CHECK (in_use >= 0),
    removed_at_ms   INTEGER              -- when it was removed; NULL while it is installed
) STRICT;

-- What only running a component needs, apart so that listing never reads it.
CREATE TABLE component_contents (
    component  INTEGER PRIMARY KEY REFERENCES components, -- whose
    descriptor TEXT NOT NULL,            -- the canonical descriptor, as it was hashed
    bytes      BLOB NOT NULL             -- the component itself
) STRICT;

-- Which component became the one for entities created later: append-only, the newest of a kind counts.
CREATE TABLE activations (
    activation INTEGER PRIMARY KEY,      -- order
    kind       TEXT NOT NULL,            -- the kind
    component  INTEGER NOT NULL REFERENCES components, -- the component
    parameters TEXT                      -- JSON object of parameters as set
               CONSTRAINT activations_parameters_are_json CHECK (json_valid(parameters)),
    at_ms      INTEGER NOT NULL,         -- when
    actor      TEXT NOT NULL,            -- by whom
    reason     TEXT NOT NULL             -- why
) STRICT;

-- The newest activation of a kind, and those before it.
CREATE INDEX activations_by_kind ON activations (kind, activation);

-- Every id ever used. Nothing is deleted here: an id is never used twice, a row number neither, and the history of a
-- removed entity still answers to its id.
CREATE TABLE entity_ids (
    entity INTEGER PRIMARY KEY,          -- the entity's number, in order of creation
    id     TEXT NOT NULL UNIQUE          -- its id; the index serves look-up by id and by prefix
           CONSTRAINT entity_ids_id_is_given CHECK (id <> ''),
    kind   TEXT NOT NULL                 -- its kind, which outlives the entity
           CONSTRAINT entity_ids_kind_is_given CHECK (kind <> '')
) STRICT;

-- Every entity as it is now.
CREATE TABLE entities (
    entity              INTEGER PRIMARY KEY REFERENCES entity_ids, -- its number, in order of creation
    kind                TEXT NOT NULL,   -- its kind, repeated for the index
    name                TEXT,            -- a name that several may share
    status              TEXT NOT NULL    -- a word of its policy
                        CONSTRAINT entities_status_is_given CHECK (status <> ''),
    terminal            INTEGER NOT NULL -- whether the status is terminal under the pinned policy
                        CONSTRAINT entities_terminal_is_a_boolean CHECK (terminal IN (0, 1)),
    success             INTEGER NOT NULL -- whether the status is a success under the pinned policy
                        CONSTRAINT entities_success_is_a_boolean CHECK (success IN (0, 1)),
    version             INTEGER NOT NULL -- grows by one with every write; every write repeats the one it read
                        CONSTRAINT entities_version_is_positive CHECK (version >= 1),
    reason_code         TEXT NOT NULL,   -- why it has the status: code
    reason_summary      TEXT,            -- why: in words
    reason_evidence     TEXT             -- why: JSON array of what was observed
                        CONSTRAINT entities_evidence_is_json CHECK (json_valid(reason_evidence)),
    component           INTEGER NOT NULL REFERENCES components, -- the policy version it keeps
    fields              TEXT             -- JSON object of companion fields without a column
                        CONSTRAINT entities_fields_are_json CHECK (json_valid(fields)),
    tags                TEXT             -- JSON object of labels; table `tags` finds by them
                        CONSTRAINT entities_tags_are_json CHECK (json_valid(tags)),
    ended_at_ms         INTEGER,         -- when the work ended
    exit_code           INTEGER,         -- the exit code, when it exited
    term_signal         INTEGER,         -- the signal, when it died by one
    cause               TEXT,            -- how it ended, observed
    attempt             INTEGER,         -- attempts made
    next_attempt_at_ms  INTEGER,         -- when the next attempt is due
    leased_by           TEXT,            -- who holds the lease
    lease_expires_at_ms INTEGER,         -- when the lease ends
    lease_attempts      INTEGER,         -- how often it was leased
    unknown_since_ms    INTEGER,         -- since when the holder is silent
    unique_key          TEXT,            -- whoever holds it is the only live one; NULL when released or never had
    fence               INTEGER NOT NULL, -- of the current lease; grows with every acquisition
    root                TEXT,            -- id of the first of its chain of attempts
    generation          INTEGER NOT NULL, -- 0 for the first of a chain
    chain_parent        TEXT,            -- id of the attempt before it
    notify              TEXT             -- JSON of the notify settings as resolved at creation
                        CONSTRAINT entities_notify_is_json CHECK (json_valid(notify)),
    created_at_ms       INTEGER NOT NULL, -- when it was created
    updated_at_ms       INTEGER NOT NULL, -- when it was last written
    due_at_ms           INTEGER,         -- when something is due for it; NULL when nothing is
    CONSTRAINT entities_only_a_terminal_status_is_a_success CHECK (success <= terminal),
    CONSTRAINT entities_nothing_is_due_for_what_ended CHECK (terminal = 0 OR due_at_ms IS NULL),
    CONSTRAINT entities_what_ended_holds_no_unique_key CHECK (terminal = 0 OR unique_key IS NULL)
) STRICT;

-- `ls KIND`, newest first. Written once per entity.
CREATE INDEX entities_by_kind ON entities (kind, entity);
-- `ls --status S`, newest first.
CREATE INDEX entities_by_status ON entities (status, entity);
-- `ls --live`, kill --all, waiting: what has not ended is few, whatever the age of the store.
CREATE INDEX entities_live ON entities (entity) WHERE terminal = 0;
-- `ls --failed` and `@failed`.
CREATE INDEX entities_failed ON entities (entity) WHERE terminal = 1 AND success = 0;
-- `--since T`: from which number on. Creation times follow the numbers but for a clock that was set back.
CREATE INDEX entities_by_creation ON entities (created_at_ms);
-- `--name N` and a name as a reference: the newest of that name.
CREATE INDEX entities_by_name ON entities (name, entity) WHERE name IS NOT NULL;
-- Claims, retries and lapses: what is due, oldest first.
CREATE INDEX entities_due ON entities (due_at_ms) WHERE due_at_ms IS NOT NULL;
-- One live holder per unique key.
CREATE UNIQUE INDEX entities_unique_key ON entities (unique_key) WHERE unique_key IS NOT NULL;

-- Labels, for `--tag K=V` newest first. Fixed at creation.
CREATE TABLE tags (
    key    TEXT NOT NULL,                -- the label's name
    value  TEXT NOT NULL,                -- its value
    entity INTEGER NOT NULL,             -- who has it
    PRIMARY KEY (key, value, entity)
) STRICT, WITHOUT ROWID;

-- Who was created below whom.
CREATE TABLE links (
    parent INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE, -- above
    child  INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE, -- below
    PRIMARY KEY (parent, child),
    CONSTRAINT links_nothing_is_below_itself CHECK (parent <> child)
) STRICT, WITHOUT ROWID;

-- Parents of an entity.
CREATE INDEX links_by_child ON links (child, parent);

-- Every status ever written: append-only. No foreign key to entities: history outlives them. The id of a row, which is
-- the id of the event it made, is STORE:ID:VERSION and needs no column.
CREATE TABLE transitions (
    transition      INTEGER PRIMARY KEY, -- order of the writes
    entity          INTEGER NOT NULL,    -- whose, as numbered in entity_ids
    version         INTEGER NOT NULL     -- the version the entity got
                    CONSTRAINT transitions_version_is_positive CHECK (version >= 1),
    previous_status TEXT,                -- the status before; NULL at creation
    status          TEXT NOT NULL        -- the status written
                    CONSTRAINT transitions_status_is_given CHECK (status <> ''),
    reason_code     TEXT NOT NULL,       -- why: code
    reason_summary  TEXT,                -- why: in words
    reason_evidence TEXT                 -- why: JSON array of what was observed
                    CONSTRAINT transitions_evidence_is_json CHECK (json_valid(reason_evidence)),
    actor_kind      TEXT NOT NULL        -- who: kind
                    CONSTRAINT transitions_actor_kind_is_given CHECK (actor_kind <> ''),
    actor_id        TEXT NOT NULL        -- who: which one
                    CONSTRAINT transitions_actor_id_is_given CHECK (actor_id <> ''),
    at_ms           INTEGER NOT NULL,    -- when
    component       INTEGER NOT NULL REFERENCES components, -- the policy that admitted it
    metadata        TEXT                 -- JSON of what the caller added
                    CONSTRAINT transitions_metadata_is_json CHECK (json_valid(metadata)),
    envelope        TEXT                 -- JSON of the event it made; NULL when it made none
                    CONSTRAINT transitions_envelope_is_json CHECK (json_valid(envelope)),
    guarded         TEXT                 -- JSON of the guard's call: component, request, decision; NULL when none was made
                    CONSTRAINT transitions_guarded_is_json CHECK (json_valid(guarded))
) STRICT;

-- History of an entity in order; the row that an event id or a key names.
CREATE UNIQUE INDEX transitions_by_entity ON transitions (entity, version);
-- Events, for consumers: few among the transitions.
CREATE INDEX transitions_events ON transitions (transition) WHERE envelope IS NOT NULL;

-- What was done to the store or refused: append-only.
CREATE TABLE admin_events (
    admin_event INTEGER PRIMARY KEY,     -- order
    at_ms       INTEGER NOT NULL,        -- when
    action      TEXT NOT NULL            -- what
                CONSTRAINT admin_events_action_is_given CHECK (action <> ''),
    target      TEXT,                    -- to what: a reference, a kind or a digest
    actor       TEXT NOT NULL,           -- by whom
    details     TEXT                     -- JSON of particulars
                CONSTRAINT admin_events_details_are_json CHECK (json_valid(details))
) STRICT;

-- `history REF --admin`.
CREATE INDEX admin_events_by_target ON admin_events (target, admin_event) WHERE target IS NOT NULL;

-- Idempotency keys, each with the history row it stands for.
CREATE TABLE keys (
    scope          INTEGER NOT NULL,     -- the entity whose transitions it is for; 0 for creations
    key            TEXT NOT NULL,        -- the key
    entity         INTEGER NOT NULL,     -- the entity written
    version        INTEGER NOT NULL,     -- the version it got
    command_digest TEXT NOT NULL,        -- SHA-256 of the command
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- What may be running. AUTOINCREMENT: whoever comes late with the number of a removed row meets no other run's.
CREATE TABLE runtimes (
    runtime             INTEGER PRIMARY KEY AUTOINCREMENT, -- its number, never used twice
    owner               INTEGER NOT NULL REFERENCES entities, -- whose; an entity with runtime rows cannot be removed
    kind                TEXT NOT NULL    -- where it runs
                        CONSTRAINT runtimes_kind_is_known CHECK (kind IN ('local', 'container', 'ssh', 'other')),
    state               TEXT NOT NULL    -- how far it has come
                        CONSTRAINT runtimes_state_is_known
                        CHECK (state IN ('starting', 'running', 'stopping', 'lingering', 'stopped', 'lost')),
    stop_unconfirmed    INTEGER NOT NULL -- a stop ended without proof
                        CONSTRAINT runtimes_stop_unconfirmed_is_a_boolean CHECK (stop_unconfirmed IN (0, 1)),
    host                TEXT NOT NULL,   -- the machine in which its numbers mean something
    boot_id             TEXT NOT NULL,   -- the boot
    pid_namespace       INTEGER,         -- inode of the pid namespace, where it could be read
    time_namespace      INTEGER,         -- inode of the time namespace, where it could be read
    worker_pid          INTEGER,         -- the worker's number
    worker_start_ticks  INTEGER,         -- its start in clock ticks since boot
    worker_pidfs_inode  INTEGER,         -- its inode on pidfs
    worker_pidfs_handle BLOB,            -- its file handle on pidfs
    shim_pid            INTEGER,         -- the shim's number
    shim_start_ticks    INTEGER,         -- its start in clock ticks since boot
    shim_pidfs_inode    INTEGER,         -- its inode on pidfs
    shim_pidfs_handle   BLOB,            -- its file handle on pidfs
    attempt_token       TEXT NOT NULL,   -- random; in the worker's environment and in the exit file
    level               TEXT,            -- the identity level the record was taken at
    containment         TEXT NOT NULL    -- what holds the set together
                        CONSTRAINT runtimes_containment_is_known
                        CHECK (containment IN ('cgroup', 'subreaper', 'pid_namespace', 'group', 'none')),
    process_group       INTEGER,         -- the worker's process group, when it is its own
    cgroup              BLOB,            -- the set's cgroup, a path
    cwd                 BLOB,            -- the working directory, a path
    run_dir             BLOB,            -- the run directory, a path
    remote_handle       TEXT,            -- what a remote system calls it
    resume_token        TEXT,            -- what its program needs to take up its work again
    stop_actor_kind     TEXT,            -- who wants it stopped: kind
    stop_actor_id       TEXT,            -- who wants it stopped: which one
    stop_note           TEXT,            -- what for
    stop_grace_ms       INTEGER,         -- from the first signal to KILL
    stop_at_ms          INTEGER,         -- when it was wanted; NULL when nobody does
    created_at_ms       INTEGER NOT NULL, -- when it was recorded
    updated_at_ms       INTEGER NOT NULL, -- when it was last written
    CONSTRAINT runtimes_stop_intent_is_whole CHECK (
        (stop_at_ms IS NULL) = (stop_actor_kind IS NULL)
        AND (stop_at_ms IS NULL) = (stop_actor_id IS NULL)
        AND (stop_at_ms IS NULL) = (stop_grace_ms IS NULL)
    )
) STRICT;

-- Runtime rows of an entity; `@`, the newest entity that has one.
CREATE INDEX runtimes_by_owner ON runtimes (owner);
-- What may be running: few, whatever the age of the store.
CREATE INDEX runtimes_not_stopped ON runtimes (runtime) WHERE state <> 'stopped';

-- Work specifications of runs.
CREATE TABLE works (
    entity INTEGER PRIMARY KEY REFERENCES entities ON DELETE CASCADE, -- the run
    work   TEXT NOT NULL                 -- JSON, opaque here
           CONSTRAINT works_work_is_json CHECK (json_valid(work))
) STRICT;

-- Open while it has its row, which only the transaction that wrote it ever sees: the deferred key points nowhere, so a
-- commit that left the row behind fails. The audited retention job opens it, deletes, and closes it.
CREATE TABLE retention_gate (
    open  INTEGER PRIMARY KEY CONSTRAINT retention_gate_is_one_row CHECK (open = 1), -- there is no second row
    never INTEGER NOT NULL DEFAULT 2     -- forbids to commit the row
          CONSTRAINT retention_gate_points_nowhere CHECK (never = 2)
          REFERENCES retention_gate (open) DEFERRABLE INITIALLY DEFERRED
) STRICT;

-- Append-only, against UPDATE, DELETE and also INSERT OR REPLACE, which fires no DELETE trigger.
CREATE TRIGGER transitions_are_not_changed BEFORE UPDATE ON transitions
BEGIN SELECT RAISE(ABORT, 'transitions is append-only'); END;
CREATE TRIGGER transitions_are_not_deleted BEFORE DELETE ON transitions
WHEN NOT EXISTS (SELECT 1 FROM retention_gate)
BEGIN SELECT RAISE(ABORT, 'transitions is append-only'); END;
CREATE TRIGGER transitions_are_not_replaced BEFORE INSERT ON transitions
WHEN EXISTS (SELECT 1 FROM transitions WHERE entity = NEW.entity AND version = NEW.version)
  OR EXISTS (SELECT 1 FROM transitions WHERE transition = NEW.transition)
BEGIN SELECT RAISE(ABORT, 'transitions is append-only'); END;

CREATE TRIGGER admin_events_are_not_changed BEFORE UPDATE ON admin_events
BEGIN SELECT RAISE(ABORT, 'admin_events is append-only'); END;
CREATE TRIGGER admin_events_are_not_deleted BEFORE DELETE ON admin_events
WHEN NOT EXISTS (SELECT 1 FROM retention_gate)
BEGIN SELECT RAISE(ABORT, 'admin_events is append-only'); END;
CREATE TRIGGER admin_events_are_not_replaced BEFORE INSERT ON admin_events
WHEN EXISTS (SELECT 1 FROM admin_events WHERE admin_event = NEW.admin_event)
BEGIN SELECT RAISE(ABORT, 'admin_events is append-only'); END;

CREATE TRIGGER activations_are_not_changed BEFORE UPDATE ON activations
BEGIN SELECT RAISE(ABORT, 'activations is append-only'); END;
CREATE TRIGGER activations_are_not_deleted BEFORE DELETE ON activations
WHEN NOT EXISTS (SELECT 1 FROM retention_gate)
BEGIN SELECT RAISE(ABORT, 'activations is append-only'); END;
CREATE TRIGGER activations_are_not_replaced BEFORE INSERT ON activations
WHEN EXISTS (SELECT 1 FROM activations WHERE activation = NEW.activation)
BEGIN SELECT RAISE(ABORT, 'activations is append-only'); END;
