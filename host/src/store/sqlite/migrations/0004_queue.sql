-- Format 4: queued work. Where leased work stands, what it waits for, who is at work.

-- Where leased work stands in its queue; NULL for what was put into none. The stage is computed by the model with every
-- write, so that no word of a policy is needed to find what may be taken or judged.
ALTER TABLE entities ADD COLUMN queue TEXT;             -- its queue, fixed at creation
ALTER TABLE entities ADD COLUMN priority INTEGER        -- higher is taken first, fixed at creation
    CONSTRAINT entities_priority_is_of_a_queue CHECK ((priority IS NULL) = (queue IS NULL));
ALTER TABLE entities ADD COLUMN stage INTEGER           -- 1 waits for other work, 2 later, 3 ready, 4 held, 5 doubted; NULL: ended
    CONSTRAINT entities_stage_is_known CHECK (stage IS NULL OR (stage BETWEEN 1 AND 5 AND queue IS NOT NULL))
    CONSTRAINT entities_what_ended_has_no_stage CHECK (terminal = 0 OR stage IS NULL);

-- What is due for leased work is found by its stage, what is due for a dispatch by its destination.
DROP INDEX entities_due;
CREATE INDEX entities_due ON entities (destination, due_at_ms) WHERE due_at_ms IS NOT NULL AND destination IS NOT NULL;
-- What a worker takes next, queue by queue. What waits, is held or has ended is not here.
CREATE INDEX entities_ready ON entities (queue, priority DESC, entity) WHERE stage = 3;
-- Delays, retries, lapses and graces: what is due for each stage, oldest first.
CREATE INDEX entities_staged_due ON entities (stage, due_at_ms, entity) WHERE stage IS NOT NULL AND due_at_ms IS NOT NULL;
-- How many rows of a queue are held.
CREATE INDEX entities_held ON entities (queue) WHERE stage >= 4;
-- One successor for each attempt.
CREATE UNIQUE INDEX entities_successor ON entities (chain_parent) WHERE chain_parent IS NOT NULL;

-- Queues that somebody set up. A queue needs no row: it is where work is put.
CREATE TABLE queues (
    queue        INTEGER PRIMARY KEY,    -- its number
    name         TEXT NOT NULL UNIQUE    -- its name
                 CONSTRAINT queues_name_is_given CHECK (name <> ''),
    paused_at_ms INTEGER,                -- since when nothing is taken from it; NULL when it is not paused
    note         TEXT,                   -- why it is paused
    held_most    INTEGER                 -- at most so many rows are held at once; NULL: no limit
                 CONSTRAINT queues_held_most_is_positive CHECK (held_most > 0)
) STRICT;

-- What a row waits for, or waited for. Goes with the row.
CREATE TABLE dependencies (
    entity   INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE, -- who waits
    awaited  INTEGER NOT NULL REFERENCES entity_ids, -- for whom, also after it was removed; a successor takes over
    success  INTEGER                     -- whether it ended with success; NULL while it has not ended
             CONSTRAINT dependencies_success_is_a_boolean CHECK (success IN (0, 1)),
    any_end  INTEGER NOT NULL DEFAULT 0  -- whether any end is as good as a success
             CONSTRAINT dependencies_any_end_is_a_boolean CHECK (any_end IN (0, 1)),
    is_news  INTEGER NOT NULL            -- it ended, and the row was not looked at since
             CONSTRAINT dependencies_is_news_is_a_boolean CHECK (is_news IN (0, 1)),
    PRIMARY KEY (entity, awaited),
    CONSTRAINT dependencies_nothing_waits_for_itself CHECK (entity <> awaited),
    CONSTRAINT dependencies_only_an_end_is_news CHECK (is_news = 0 OR success IS NOT NULL)
) STRICT, WITHOUT ROWID;

-- Who waits for an entity that ends.
CREATE INDEX dependencies_by_awaited ON dependencies (awaited) WHERE success IS NULL;
-- Who is to be looked at.
CREATE INDEX dependencies_news ON dependencies (entity) WHERE is_news = 1;

-- Processes that take work. A row stays while leased work may name it.
CREATE TABLE workers (
    worker          INTEGER PRIMARY KEY, -- its number, in order of the starts
    holder          TEXT NOT NULL UNIQUE -- random for each start; what rows name
                    CONSTRAINT workers_holder_is_given CHECK (holder <> ''),
    particulars     TEXT NOT NULL        -- JSON: name, machine, process, slots, queues
                    CONSTRAINT workers_particulars_are_json CHECK (json_valid(particulars)),
    heartbeat_at_ms INTEGER NOT NULL,    -- its last sign of life, in steady time
    stopped_at_ms   INTEGER              -- when it stopped; NULL while it is at work
) STRICT;

-- Steady time of a boot: milliseconds since 1970 that the boot clock's zero stands for, fixed by whoever needed it first.
CREATE TABLE boots (
    boot_id        TEXT NOT NULL,        -- the boot
    time_namespace INTEGER NOT NULL,     -- inode of the time namespace; 0 where what it adds is taken out, or none can be read
    offset_ms      INTEGER NOT NULL,     -- what is added to the boot clock
    PRIMARY KEY (boot_id, time_namespace)
) STRICT, WITHOUT ROWID;

-- How late renewals of leases were: a histogram over the life of the store.
CREATE TABLE renewal_delays (
    limit_ms INTEGER PRIMARY KEY,        -- upper limit, in milliseconds; -1 for all above
    renewals INTEGER NOT NULL,           -- how many
    late_ms  INTEGER NOT NULL            -- how late they were, all together
) STRICT;

-- Writes that came under a fence that was not current any more, to count them.
CREATE INDEX admin_events_late_writes ON admin_events (admin_event) WHERE action = 'lease_write_refused';

-- Work that is due again and again.
CREATE TABLE schedules (
    schedule        INTEGER PRIMARY KEY, -- its number
    name            TEXT NOT NULL UNIQUE -- what users call it
                    CONSTRAINT schedules_name_is_given CHECK (name <> ''),
    cadence         TEXT NOT NULL        -- JSON of when it fires
                    CONSTRAINT schedules_cadence_is_json CHECK (json_valid(cadence)),
    overlap         TEXT NOT NULL,       -- what happens while an earlier one is not over
    missed          TEXT NOT NULL,       -- what happens to fire times that nobody saw
    paused          INTEGER NOT NULL     -- whether nothing is fired
                    CONSTRAINT schedules_paused_is_a_boolean CHECK (paused IN (0, 1)),
    next_fire_at_ms INTEGER,             -- the next fire time that was not dealt with; NULL when there is no more
    submission      TEXT NOT NULL        -- JSON of what it starts
                    CONSTRAINT schedules_submission_is_json CHECK (json_valid(submission)),
    created_at_ms   INTEGER NOT NULL,    -- when it was added; intervals count from here
    actor           TEXT NOT NULL        -- by whom
) STRICT;

-- What is due, and when the next is.
CREATE INDEX schedules_due ON schedules (next_fire_at_ms) WHERE paused = 0 AND next_fire_at_ms IS NOT NULL;

-- What stands for a fire time: one entity, whoever fires, however often. Gone with the entity or the schedule.
CREATE TABLE occurrences (
    schedule      INTEGER NOT NULL REFERENCES schedules ON DELETE CASCADE, -- the schedule
    nominal_at_ms INTEGER NOT NULL,      -- the fire time
    entity        INTEGER NOT NULL REFERENCES entities ON DELETE CASCADE, -- what stands for it: the last of its attempts
    fired_at_ms   INTEGER NOT NULL,      -- when it was dealt with
    open          INTEGER NOT NULL       -- whether it may still be at work; set to 0 by a later fire time, not by its end
                  CONSTRAINT occurrences_open_is_a_boolean CHECK (open IN (0, 1)),
    PRIMARY KEY (schedule, nominal_at_ms)
) STRICT, WITHOUT ROWID;

-- What goes with an entity, and what its next attempt takes over.
CREATE UNIQUE INDEX occurrences_by_entity ON occurrences (entity);
-- What may overlap with the next fire time.
CREATE INDEX occurrences_open ON occurrences (schedule, nominal_at_ms) WHERE open = 1;
