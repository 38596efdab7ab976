-- Format 3: the outbox. What is delivered where, what is still to be planned, and who outside has heard of what.

-- Where dispatches lead, each once however many dispatches go there, and how it has been doing. Rows stay: there are as
-- many as there were destinations in the settings.
CREATE TABLE destinations (
    destination        INTEGER PRIMARY KEY, -- its number
    digest             TEXT NOT NULL UNIQUE -- SHA-256 of target, in hexadecimal
                       CONSTRAINT destinations_digest_is_given CHECK (digest <> ''),
    target             TEXT NOT NULL     -- JSON of how it is reached; secrets are named, never held
                       CONSTRAINT destinations_target_is_json CHECK (json_valid(target)),
    label              TEXT NOT NULL DEFAULT '', -- what it is, for people; empty before the first attempt
    failures           INTEGER NOT NULL DEFAULT 0 -- failed attempts since the last success
                       CONSTRAINT destinations_failures_are_a_count CHECK (failures >= 0),
    paused_until_at_ms INTEGER,          -- nothing is sent there before; NULL when it is not paused
    last_error         TEXT              -- why the last attempt failed
) STRICT;

-- Destinations that fail.
CREATE INDEX destinations_failing ON destinations (destination) WHERE failures > 0;

-- Where an entity's delivery leads; NULL for what delivers nothing. Fixed at creation. Here and not in `dispatches`, so
-- that one index finds what is due and where it goes, and a claim writes one row.
ALTER TABLE entities ADD COLUMN destination INTEGER REFERENCES destinations;

-- Claims, retries and lapses: what is due, oldest first, apart for each destination, so that one that is paused is
-- stepped over whatever waits for it. What is dead has nothing due and is not here.
DROP INDEX entities_due;
CREATE INDEX entities_due ON entities (destination, due_at_ms) WHERE due_at_ms IS NOT NULL;

-- What a dispatch has beside its entity: fixed when it is enqueued, but for `held`.
CREATE TABLE dispatches (
    entity                INTEGER PRIMARY KEY REFERENCES entities ON DELETE CASCADE, -- the dispatch
    event_entity          INTEGER,       -- whose event it tells, as numbered in entity_ids; NULL when somebody sent it
    event_version         INTEGER,       -- which event: the version that the entity got
    handler               TEXT,          -- the binding whose handler planned it; NULL when somebody sent it
    name                  TEXT NOT NULL  -- the destination's name in its binding
                          CONSTRAINT dispatches_name_is_given CHECK (name <> ''),
    dedup_key             TEXT NOT NULL  -- no other dispatch is made with it while it is held
                          CONSTRAINT dispatches_dedup_key_is_given CHECK (dedup_key <> ''),
    held                  INTEGER NOT NULL -- whether it holds its key: until it ends without success
                          CONSTRAINT dispatches_held_is_a_boolean CHECK (held IN (0, 1)),
    deadline_at_ms        INTEGER,       -- after this it is not sent any more; NULL when there is no such moment
    wants_acknowledgement INTEGER NOT NULL -- whether the receiver presents the token, or it is sent again
                          CONSTRAINT dispatches_wants_acknowledgement_is_a_boolean
                          CHECK (wants_acknowledgement IN (0, 1)),
    body_bytes            INTEGER NOT NULL -- length of the body
                          CONSTRAINT dispatches_body_bytes_is_a_length CHECK (body_bytes >= 0),
    body_digest           TEXT NOT NULL  -- SHA-256 of the body, in hexadecimal
                          CONSTRAINT dispatches_body_digest_is_given CHECK (body_digest <> ''),
    CONSTRAINT dispatches_event_is_whole CHECK ((event_entity IS NULL) = (event_version IS NULL))
) STRICT;

-- What became of the events of an entity.
CREATE INDEX dispatches_by_event ON dispatches (event_entity) WHERE event_entity IS NOT NULL;
-- One holder of a deduplication key; what is dead or expired gave it back.
CREATE UNIQUE INDEX dispatches_holders ON dispatches (dedup_key) WHERE held = 1;

-- Bodies, apart so that nothing but an attempt reads them. Every attempt sends these bytes.
CREATE TABLE dispatch_bodies (
    entity INTEGER PRIMARY KEY REFERENCES dispatches ON DELETE CASCADE, -- the dispatch
    body   BLOB NOT NULL                 -- what is sent
) STRICT;

-- Plans that are still to be made, written in the commit of their event.
CREATE TABLE owed_plans (
    owed_plan     INTEGER PRIMARY KEY,   -- its number
    event_entity  INTEGER NOT NULL,      -- whose event, as numbered in entity_ids
    event_version INTEGER NOT NULL,      -- which event: the version that the entity got
    handler       TEXT NOT NULL          -- the binding to which it is owed
                  CONSTRAINT owed_plans_handler_is_given CHECK (handler <> ''),
    settings      TEXT                   -- JSON of the entity's notify settings, which may be removed before
                  CONSTRAINT owed_plans_settings_are_json CHECK (json_valid(settings)),
    tries         INTEGER NOT NULL       -- how often it was tried
                  CONSTRAINT owed_plans_tries_are_a_count CHECK (tries >= 0),
    due_at_ms     INTEGER NOT NULL,      -- when it is tried again
    error         TEXT,                  -- why the last try failed; NULL before the first
    -- The history row holds the envelope: retention may not take it.
    FOREIGN KEY (event_entity, event_version) REFERENCES transitions (entity, version)
) STRICT;

-- An event is owed to a handler once; and what retention may not take.
CREATE UNIQUE INDEX owed_plans_by_event ON owed_plans (event_entity, event_version, handler);
-- Plans that are due.
CREATE INDEX owed_plans_due ON owed_plans (due_at_ms);

-- Handlers that are bound for every entity created later, unless a settings file says otherwise.
CREATE TABLE bindings (
    binding       INTEGER PRIMARY KEY,   -- its number
    name          TEXT NOT NULL UNIQUE   -- its name
                  CONSTRAINT bindings_name_is_given CHECK (name <> ''),
    settings      TEXT NOT NULL          -- JSON of what a settings file would say of it
                  CONSTRAINT bindings_settings_are_json CHECK (json_valid(settings)),
    created_at_ms INTEGER NOT NULL,      -- when it was added
    actor         TEXT NOT NULL          -- by whom
) STRICT;

-- Who outside is owed events. Rows stay: a name is not used twice.
CREATE TABLE consumers (
    consumer      INTEGER PRIMARY KEY,   -- its number
    name          TEXT NOT NULL UNIQUE   -- its name
                  CONSTRAINT consumers_name_is_given CHECK (name <> ''),
    since_at_ms   INTEGER,               -- events that occurred at or after this are owed; NULL: all there are
    created_at_ms INTEGER NOT NULL,      -- when it was added
    retired_at_ms INTEGER                -- when it was retired; NULL while it is active
) STRICT;

-- Which consumer has which event. Append-only; a row goes with its history row and not otherwise.
CREATE TABLE acknowledgements (
    event_entity  INTEGER NOT NULL,      -- whose event, as numbered in entity_ids
    event_version INTEGER NOT NULL,      -- which event: the version that the entity got
    consumer      INTEGER NOT NULL REFERENCES consumers, -- who has it
    at_ms         INTEGER NOT NULL,      -- since when
    PRIMARY KEY (event_entity, event_version, consumer),
    FOREIGN KEY (event_entity, event_version) REFERENCES transitions (entity, version) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TRIGGER acknowledgements_are_not_changed BEFORE UPDATE ON acknowledgements
BEGIN SELECT RAISE(ABORT, 'acknowledgements is append-only'); END;
CREATE TRIGGER acknowledgements_are_not_deleted BEFORE DELETE ON acknowledgements
WHEN NOT EXISTS (SELECT 1 FROM retention_gate)
BEGIN SELECT RAISE(ABORT, 'acknowledgements is append-only'); END;
CREATE TRIGGER acknowledgements_are_not_replaced BEFORE INSERT ON acknowledgements
WHEN EXISTS (SELECT 1 FROM acknowledgements WHERE event_entity = NEW.event_entity
        AND event_version = NEW.event_version AND consumer = NEW.consumer)
BEGIN SELECT RAISE(ABORT, 'acknowledgements is append-only'); END;
