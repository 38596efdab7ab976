-- Format 5: parameters that entities keep, policies that are tried beside the active one, limits of single components, who
-- signed them.

-- What an operator had set for its policy when an entity was created, or carried over to another policy.
ALTER TABLE entities ADD COLUMN parameters TEXT         -- JSON object of them; NULL: none were set
    CONSTRAINT entities_parameters_are_json CHECK (json_valid(parameters));

-- Those that are there keep what they were judged by so far: what was set last.
UPDATE entities SET parameters = (
    SELECT a.parameters FROM activations a WHERE a.component = entities.component ORDER BY a.activation DESC LIMIT 1
) WHERE component IN (SELECT component FROM activations WHERE parameters IS NOT NULL);

-- Limits that an operator raised for this component when it was installed.
ALTER TABLE components ADD COLUMN limits TEXT           -- JSON object of them; NULL: the standard ones
    CONSTRAINT components_limits_are_json CHECK (json_valid(limits));

-- Who signed a component, verified when it was installed. Goes with its contents.
CREATE TABLE signatures (
    component  INTEGER NOT NULL REFERENCES components, -- what is signed
    public_key BLOB NOT NULL             -- ed25519, 32 bytes
               CONSTRAINT signatures_public_key_is_ed25519 CHECK (length(public_key) = 32),
    key_id     BLOB NOT NULL             -- what signatures name the key by, 8 bytes
               CONSTRAINT signatures_key_id_has_8_bytes CHECK (length(key_id) = 8),
    signature  BLOB NOT NULL             -- over the component, 64 bytes
               CONSTRAINT signatures_signature_is_ed25519 CHECK (length(signature) = 64),
    at_ms      INTEGER NOT NULL,         -- when it was verified
    PRIMARY KEY (component, public_key)
) STRICT, WITHOUT ROWID;

-- Policies that judge what happens to entities of a kind beside the policy that decides; nothing they say is enforced.
CREATE TABLE shadows (
    kind       TEXT PRIMARY KEY,         -- whose entities
    component  INTEGER NOT NULL REFERENCES components, -- which policy judges
    parameters TEXT                      -- JSON object of parameters as set
               CONSTRAINT shadows_parameters_are_json CHECK (json_valid(parameters)),
    at_ms      INTEGER NOT NULL,         -- since when
    actor      TEXT NOT NULL,            -- by whom
    reason     TEXT NOT NULL,            -- why
    same       INTEGER NOT NULL DEFAULT 0 -- how often it said what the deciding policy said
               CONSTRAINT shadows_same_is_a_count CHECK (same >= 0),
    different  INTEGER NOT NULL DEFAULT 0 -- how often it said something else; each has an audit row
               CONSTRAINT shadows_different_is_a_count CHECK (different >= 0),
    unjudged   INTEGER NOT NULL DEFAULT 0 -- how often it could not be asked
               CONSTRAINT shadows_unjudged_is_a_count CHECK (unjudged >= 0)
) STRICT, WITHOUT ROWID;
