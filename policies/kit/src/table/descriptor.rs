use crate::{
    DeliveryRule, Descriptor, Edge, ExecutionRule, Field, HealthThreshold, KillRow, LeaseRule, Migration, Parameter,
    Reads, ReasonCode, RetrySchedule, Status, VerdictRow,
};

/// An empty table for a kind; the policy bears the kind's name. Same-status writes are appended.
pub fn policy(kind: &str, version: &str, summary: &str) -> Descriptor {
    Descriptor {
        kind: kind.to_owned(),
        name: kind.to_owned(),
        version: version.to_owned(),
        summary: summary.to_owned(),
        statuses: Vec::new(),
        edges: Vec::new(),
        same_status: "append".to_owned(),
        fields: Vec::new(),
        reason_codes: Vec::new(),
        emits_events: false,
        measures_end: false,
        execution: None,
        verdicts: Vec::new(),
        kill: Vec::new(),
        lease: None,
        delivery: None,
        retry: None,
        health: Vec::new(),
        parameters: Vec::new(),
        reads: Reads {
            children: false,
            history: 0,
            tags: false,
            last_output_bytes: 0,
            ext: Vec::new(),
        },
        migrations: Vec::new(),
        ext: Vec::new(),
    }
}

/// What takes rows adds them to those that are there.
impl Descriptor {
    /// Names the policy when it is not named like its kind.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// Adds words to the vocabulary.
    #[must_use]
    pub fn statuses(mut self, rows: impl IntoIterator<Item = Status>) -> Self {
        self.statuses.extend(rows);
        self
    }

    /// Adds moves.
    #[must_use]
    pub fn edges(mut self, rows: impl IntoIterator<Item = Edge>) -> Self {
        self.edges.extend(rows);
        self
    }

    /// Refuses writes of the status that an entity already has.
    #[must_use]
    pub fn rejecting_same_status(mut self) -> Self {
        self.same_status = "reject".to_owned();
        self
    }

    /// Adds fields that a transition may patch.
    #[must_use]
    pub fn fields(mut self, rows: impl IntoIterator<Item = Field>) -> Self {
        self.fields.extend(rows);
        self
    }

    /// Adds reason codes.
    #[must_use]
    pub fn codes(mut self, rows: impl IntoIterator<Item = ReasonCode>) -> Self {
        self.reason_codes.extend(rows);
        self
    }

    /// Terminal statuses make events.
    #[must_use]
    pub fn emitting_events(mut self) -> Self {
        self.emits_events = true;
        self
    }

    /// The host fills `ended_at` and `duration_ms` at the end.
    #[must_use]
    pub fn measuring_ends(mut self) -> Self {
        self.measures_end = true;
        self
    }

    /// Says what the host writes for processes that it runs as this kind.
    #[must_use]
    pub fn execution(mut self, rule: ExecutionRule) -> Self {
        self.execution = Some(rule);
        self
    }

    /// Adds rows that say what an ending means; the first that matches decides.
    #[must_use]
    pub fn verdicts(mut self, rows: impl IntoIterator<Item = VerdictRow>) -> Self {
        self.verdicts.extend(rows);
        self
    }

    /// Adds a row that says what a kill writes.
    #[must_use]
    pub fn kill(mut self, row: KillRow) -> Self {
        self.kill.push(row);
        self
    }

    /// Says how leased work is claimed and lost.
    #[must_use]
    pub fn lease(mut self, rule: LeaseRule) -> Self {
        self.lease = Some(rule);
        self
    }

    /// Says how a dispatch moves through its delivery.
    #[must_use]
    pub fn delivery(mut self, rule: DeliveryRule) -> Self {
        self.delivery = Some(rule);
        self
    }

    /// Says when a failed attempt is tried again.
    #[must_use]
    pub fn retry(mut self, schedule: RetrySchedule) -> Self {
        self.retry = Some(schedule);
        self
    }

    /// Adds limits of quiet.
    #[must_use]
    pub fn health(mut self, rows: impl IntoIterator<Item = HealthThreshold>) -> Self {
        self.health.extend(rows);
        self
    }

    /// Adds values that the operator sets at activation.
    #[must_use]
    pub fn parameters(mut self, rows: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(rows);
        self
    }

    /// Adds rows that say how entities of other versions are carried over; the first that fits decides.
    #[must_use]
    pub fn migrations(mut self, rows: impl IntoIterator<Item = Migration>) -> Self {
        self.migrations.extend(rows);
        self
    }

    /// Guard, verdict and health see the linked children.
    #[must_use]
    pub fn reading_children(mut self) -> Self {
        self.reads.children = true;
        self
    }

    /// Guard, verdict and health see so many of the newest history rows, at most 100.
    #[must_use]
    pub fn reading_history(mut self, rows: i64) -> Self {
        self.reads.history = rows;
        self
    }

    /// Guard, verdict and health see the tags.
    #[must_use]
    pub fn reading_tags(mut self) -> Self {
        self.reads.tags = true;
        self
    }

    /// A verdict sees so many bytes of the end of the output, at most 65,536.
    #[must_use]
    pub fn reading_last_output(mut self, bytes: i64) -> Self {
        self.reads.last_output_bytes = bytes;
        self
    }
}
