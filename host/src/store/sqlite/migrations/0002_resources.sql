-- Format 2: what belongs to a run outside its run directory.

-- Directories that a run registered as its own and that are removed with it. AUTOINCREMENT: whoever comes late with the
-- number of a removed row meets no other run's.
CREATE TABLE resources (
    resource      INTEGER PRIMARY KEY AUTOINCREMENT, -- its number, never used twice
    owner         INTEGER NOT NULL REFERENCES entities, -- whose; an entity with resources cannot be removed
    directory     BLOB NOT NULL          -- where it is, an absolute path
                  CONSTRAINT resources_directory_is_absolute CHECK (substr(directory, 1, 1) = X'2F'),
    created_at_ms INTEGER NOT NULL       -- when it was registered
) STRICT;

-- Resources of an entity.
CREATE INDEX resources_by_owner ON resources (owner);
