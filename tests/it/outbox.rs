//! What tests of notices share: the outbox through the library, and claims that lapse without a wait.

use std::path::Path;

use runwarden_host::Host;
use runwarden_host::model::{DISPATCH_KIND, Dispatch, Entity, NotifySettings};
use runwarden_host::notify::settings::{Asked, Files};
use runwarden_host::store::EntityQuery;
use runwarden_host::verbs::notices;
use rusqlite::Connection;
use serde_json::Value;

use crate::harness::Home;

impl Home {
    /// Binds a handler with these options.
    pub(crate) fn bind(&self, name: &str, options: &[&str]) {
        self.done(&[&["notify", "add", name], options].concat());
    }

    /// A session that ends well.
    pub(crate) fn ended_session(&self, id: &str, options: &[&str]) {
        self.done(&[&["create", "session", "--id", id], options].concat());
        self.done(&["transition", id, "completed", "--reason", "run.completed.ok"]);
    }

    /// All notices.
    pub(crate) fn notices(&self) -> Vec<Value> {
        let listed = self.json(&["outbox", "ls", "--limit", "10000"]);
        listed.as_array().expect("notices are a list").clone()
    }

    /// The one notice there is.
    #[track_caller]
    pub(crate) fn notice(&self) -> Value {
        let mut notices = self.notices();
        assert_eq!(notices.len(), 1, "{notices:?}");
        notices.remove(0)
    }

    /// The store, past the program.
    pub(crate) fn database(&self) -> Connection {
        let store = Connection::open(self.home().join("state.db")).expect("the store is a database");
        store
            .busy_timeout(std::time::Duration::from_secs(20))
            .expect("a time limit");
        store
    }

    /// How many rows a query counts.
    pub(crate) fn counted(&self, sql: &str) -> i64 {
        let counted = self.database().query_row(sql, [], |row| row.get(0));
        counted.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Lets every claim lapse and every wait end, as time would.
    pub(crate) fn overdue(&self) {
        let sql = "UPDATE entities SET due_at_ms = unixepoch() * 1000, next_attempt_at_ms = unixepoch() * 1000 \
                       WHERE due_at_ms > unixepoch() * 1000;
                   UPDATE owed_plans SET due_at_ms = 0;
                   UPDATE destinations SET paused_until_at_ms = 0 WHERE paused_until_at_ms IS NOT NULL;";
        self.database().execute_batch(sql).expect("the statements fit");
    }
}

/// Everything that is bound in the store.
pub(crate) fn bound(host: &Host) -> NotifySettings {
    let notices = notices(host, &Files::default(), &Asked::Settings);
    notices.expect("the store is readable").settings
}

/// All dispatches with what they deliver.
pub(crate) fn dispatches(host: &Host) -> Vec<(Entity, Dispatch)> {
    let query = EntityQuery {
        kind: Some(DISPATCH_KIND.to_owned()),
        ..EntityQuery::default()
    };
    let entities = host.store().list(&query).expect("the store is readable");
    let whole = |entity: Entity| {
        let dispatch = host.store().dispatch(&entity.reference.id);
        let dispatch = dispatch.expect("the store is readable").expect("it is a dispatch");
        (entity, dispatch)
    };
    entities.into_iter().map(whole).collect()
}

/// A file's lines; none while there is none.
pub(crate) fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}
