//! Shadows in memory, and what happened from the newest back.

use super::{MemoryStore, Step};
use crate::model::{AdminEvent, HistoryRow};
use crate::store::{Judged, JudgedCounts, Judging, PageBack, RuntimeUpdate, Shadow, StoreError};

impl super::State {
    /// Counts what a shadow said, if it is still there.
    pub(super) fn count_judged(&mut self, judged: &Judged) {
        let shadow = self.shadows.get_mut(&judged.kind);
        if let Some(shadow) = shadow.filter(|shadow| shadow.digest == judged.digest) {
            let (all, more) = (&mut shadow.counts, judged.counts);
            all.same += more.same;
            all.different += more.different;
            all.unjudged += more.unjudged;
        }
    }
}

impl Judging for MemoryStore {
    fn history_back(&self, page: &PageBack) -> Result<Vec<(i64, HistoryRow)>, StoreError> {
        let state = self.state();
        let rows = state.history.iter().rev().map(|(number, (row, _))| (*number, row));
        let fits = |(number, row): &(i64, &HistoryRow)| {
            row.reference.kind == page.of
                && page.before.is_none_or(|before| *number < before)
                && page.since.is_none_or(|since| row.at >= since)
        };
        let rows = rows.filter(fits).map(|(number, row)| (number, row.clone()));
        Ok(rows.take(page.limit).collect())
    }

    fn audit_back(&self, page: &PageBack) -> Result<Vec<AdminEvent>, StoreError> {
        let state = self.state();
        let fits = |event: &&AdminEvent| {
            event.action == page.of
                && page.before.is_none_or(|before| event.id < before)
                && page.since.is_none_or(|since| event.at >= since)
        };
        let rows = state.admin_events.iter().rev().filter(fits);
        Ok(rows.take(page.limit).cloned().collect())
    }

    fn shadow(&self, kind: &str) -> Result<Option<Shadow>, StoreError> {
        Ok(self.state().shadows.get(kind).cloned())
    }

    fn shadows(&self) -> Result<Vec<Shadow>, StoreError> {
        Ok(self.state().shadows.values().cloned().collect())
    }

    fn put_shadow(&self, shadow: &Shadow, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            if state.installed(&shadow.digest).is_none() {
                return Ok(Step::WroteNothing(false));
            }
            let fresh = Shadow {
                counts: JudgedCounts::default(),
                ..shadow.clone()
            };
            state.shadows.insert(shadow.kind.clone(), fresh);
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }

    fn drop_shadow(&self, kind: &str, event: &AdminEvent) -> Result<bool, StoreError> {
        self.commit(|state| {
            if state.shadows.remove(kind).is_none() {
                return Ok(Step::WroteNothing(false));
            }
            state.record(std::slice::from_ref(event));
            Ok(Step::Wrote(true))
        })
    }

    fn record_judged(
        &self,
        events: &[AdminEvent],
        runtimes: &[RuntimeUpdate],
        judged: &Judged,
    ) -> Result<(), StoreError> {
        self.commit(|state| {
            if !state.update_runtimes(runtimes) && !runtimes.is_empty() {
                return Ok(Step::WroteNothing(()));
            }
            state.record(events);
            state.count_judged(judged);
            Ok(Step::Wrote(()))
        })
    }
}
