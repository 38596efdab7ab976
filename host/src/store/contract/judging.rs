//! What is promised of pages that go back, and of policies that judge beside others.

use super::{AdminQuery, Subject, end, forget, make};
use crate::model::{AdminEvent, Timestamp};
use crate::store::samples::{Success, activation, admin_event, change, component, moment, new_entity};
use crate::store::{Applied, Created, Judged, JudgedCounts, PageBack, RuntimeUpdate, Shadow, ShadowSeen, Store};

pub(super) const PROMISES: [fn(&Subject); 5] = [
    history_is_read_back_by_kind_in_pages,
    audit_rows_are_read_back_by_action_in_pages,
    a_shadow_is_kept_whole_and_one_for_a_kind,
    a_shadow_keeps_its_component_until_it_ends_or_is_put_in_force,
    what_a_shadow_says_is_counted_with_the_fact_or_not_at_all,
];

fn page(of: &str, since: Option<Timestamp>, before: Option<i64>, limit: usize) -> PageBack {
    PageBack {
        of: of.to_owned(),
        since,
        before,
        limit,
    }
}

fn history_is_read_back_by_kind_in_pages(subject: &Subject) {
    let store = subject.store.as_ref();
    let told = |page: &PageBack| -> Vec<(String, i64)> {
        let rows = store.history_back(page).unwrap();
        assert!(rows.windows(2).all(|pair| pair[0].0 > pair[1].0), "newest first");
        rows.iter()
            .map(|(_, row)| (row.reference.id.clone(), row.version))
            .collect()
    };
    let row = |id: &str, version: i64| (id.to_owned(), version);
    assert_eq!(told(&page("run", None, None, 9)), []);
    let (a, b) = (make(store, "a"), make(store, "b"));
    assert!(matches!(
        store.create(&new_entity(store, "play", "p"), None).unwrap(),
        Created::New { .. }
    ));
    end(store, &a, Success::Yes);
    forget(store, "a");
    assert_eq!(store.apply(&change(store, &b, "waiting")).unwrap(), Applied::Written);
    assert_eq!(
        told(&page("run", None, None, 9)),
        [row("b", 2), row("a", 2), row("b", 1), row("a", 1)],
        "those of removed entities too"
    );
    assert_eq!(told(&page("play", None, None, 9)), [row("p", 1)]);
    let first = store.history_back(&page("run", None, None, 2)).unwrap();
    let rest = page("run", None, Some(first[1].0), 9);
    assert_eq!(told(&rest), [row("b", 1), row("a", 1)]);
    assert_eq!(
        told(&page("run", Some(moment(20)), None, 9)),
        [row("b", 2), row("a", 2)],
        "at or after"
    );
    let whole = store.history_back(&page("run", None, None, 1)).unwrap();
    assert_eq!(whole[0].1.guarded, change(store, &b, "waiting").change.row.guarded);
}

fn audit_rows_are_read_back_by_action_in_pages(subject: &Subject) {
    let store = subject.store.as_ref();
    let rows: Vec<AdminEvent> = ["a", "b", "c"].map(|target| admin_event("noted", target)).into();
    store.record(&rows, &[]).unwrap();
    store.record(&[admin_event("other", "d")], &[]).unwrap();
    let told = |page: &PageBack| -> Vec<String> {
        let rows = store.audit_back(page).unwrap().into_iter();
        rows.filter_map(|event| event.target).collect()
    };
    assert_eq!(told(&page("noted", None, None, 9)), ["c", "b", "a"]);
    let first = store.audit_back(&page("noted", None, None, 2)).unwrap();
    assert_eq!(told(&page("noted", None, Some(first[1].id), 9)), ["a"]);
    assert_eq!(told(&page("noted", Some(moment(31)), None, 9)), [""; 0]);
    assert_eq!(told(&page("noted", Some(moment(30)), None, 9)).len(), 3);
}

/// Lets a component judge runs.
fn shadow(digest: &str, parameter: i64) -> Shadow {
    Shadow {
        kind: "run".to_owned(),
        digest: digest.to_owned(),
        parameters: [("quorum".to_owned(), parameter.into())].into_iter().collect(),
        at: moment(40),
        actor: "operator:tests".to_owned(),
        reason: "to see".to_owned(),
        counts: JudgedCounts::default(),
    }
}

fn install(store: &dyn Store, digest: &str) {
    store.install(&[component("run", digest)], &[], &[]).unwrap();
}

fn put(store: &dyn Store, shadow: &Shadow) -> bool {
    store
        .put_shadow(shadow, &admin_event("shadow_started", &shadow.digest))
        .unwrap()
}

fn audited(store: &dyn Store) -> usize {
    store.admin_events(&AdminQuery::default()).unwrap().len()
}

fn a_shadow_is_kept_whole_and_one_for_a_kind(subject: &Subject) {
    let store = subject.store.as_ref();
    let before = audited(store);
    assert_eq!(store.shadow("run").unwrap(), None);
    assert!(!put(store, &shadow("aa", 1)), "it is not installed");
    assert!(!store.drop_shadow("run", &admin_event("x", "y")).unwrap());
    assert_eq!(audited(store), before);
    install(store, "aa");
    install(store, "bb");
    assert!(put(store, &shadow("aa", 1)));
    assert_eq!(store.shadow("run").unwrap(), Some(shadow("aa", 1)));
    assert_eq!(store.shadow("play").unwrap(), None);
    assert!(put(store, &shadow("bb", 2)), "in the place of the other");
    assert_eq!(store.shadows().unwrap(), [shadow("bb", 2)]);
    assert!(store.drop_shadow("run", &admin_event("shadow_stopped", "bb")).unwrap());
    assert_eq!(store.shadows().unwrap(), []);
    assert_eq!(audited(store), before + 3);
}

fn a_shadow_keeps_its_component_until_it_ends_or_is_put_in_force(subject: &Subject) {
    let store = subject.store.as_ref();
    install(store, "aa");
    install(store, "bb");
    assert!(put(store, &shadow("aa", 1)));
    assert!(!store.remove_component("aa", &admin_event("x", "y")).unwrap());
    assert!(
        store
            .activate(&activation("run", "bb"), &admin_event("x", "y"))
            .unwrap()
    );
    assert!(store.shadow("run").unwrap().is_some(), "another one was put in force");
    assert!(
        store
            .activate(&activation("run", "aa"), &admin_event("x", "y"))
            .unwrap()
    );
    assert_eq!(store.shadow("run").unwrap(), None);
    assert!(put(store, &shadow("bb", 1)));
    assert!(store.drop_shadow("run", &admin_event("x", "y")).unwrap());
    assert!(store.remove_component("bb", &admin_event("x", "y")).unwrap());
}

fn what_a_shadow_says_is_counted_with_the_fact_or_not_at_all(subject: &Subject) {
    let store = subject.store.as_ref();
    install(store, "aa");
    assert!(put(store, &shadow("aa", 1)));
    let said = |digest: &str, same: i64, different: i64, unjudged: i64| Judged {
        kind: "run".to_owned(),
        digest: digest.to_owned(),
        counts: JudgedCounts {
            same,
            different,
            unjudged,
        },
    };
    let counts = || {
        let counts = store.shadow("run").unwrap().unwrap().counts;
        (counts.same, counts.different, counts.unjudged)
    };
    let entity = make(store, "r");
    let mut effects = change(store, &entity, "waiting");
    effects.shadow = ShadowSeen::Asked(said("aa", 1, 0, 0));
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    assert!(matches!(store.apply(&effects).unwrap(), Applied::Lost(_)));
    assert_eq!(counts(), (1, 0, 0), "what is lost is not counted");
    let entity = store.load("r").unwrap().unwrap();
    let mut effects = change(store, &entity, "running");
    for unjudged in [ShadowSeen::Absent, ShadowSeen::Asked(said("other", 1, 0, 0))] {
        effects.shadow = unjudged;
        assert!(
            matches!(store.apply(&effects).unwrap(), Applied::Lost(Some(_))),
            "it was not judged"
        );
    }
    effects.shadow = ShadowSeen::Unasked;
    assert_eq!(store.apply(&effects).unwrap(), Applied::Written);
    let audited_before = audited(store);
    store
        .record_judged(&[admin_event("refused", "r")], &[], &said("aa", 0, 1, 0))
        .unwrap();
    store.record_judged(&[], &[], &said("aa", 0, 0, 1)).unwrap();
    store.record_judged(&[], &[], &said("other", 5, 5, 5)).unwrap();
    assert_eq!(counts(), (1, 1, 1), "another one is not counted for");
    let told = RuntimeUpdate {
        id: 77,
        ..RuntimeUpdate::default()
    };
    store
        .record_judged(&[admin_event("refused", "r")], &[told], &said("aa", 0, 1, 0))
        .unwrap();
    assert_eq!(counts(), (1, 1, 1), "somebody else recorded the fact");
    assert_eq!(audited(store), audited_before + 1);
    assert!(put(store, &shadow("aa", 1)));
    assert_eq!(counts(), (0, 0, 0), "it begins anew");
}
