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
