//! `policy diff`: what changes from one policy to another, and which live entities that would touch.

use runwarden_host::model::Descriptor;
use runwarden_host::policy::table;
use serde_json::json;

use crate::harness::Home;

/// A file with the table of the kind `play`, changed.
fn changed(home: &Home, change: impl FnOnce(&mut Descriptor)) -> String {
    let ships = runwarden_bundled::POLICIES.iter().find(|policy| policy.kind == "play");
    let mut descriptor: Descriptor = serde_json::from_str(ships.expect("it ships").descriptor).expect("a descriptor");
    change(&mut descriptor);
    let file = home.path("changed.wasm");
    std::fs::write(&file, table::component(&descriptor)).expect("a file");
    file.to_string_lossy().into_owned()
}

#[test]
fn a_policy_does_not_differ_from_itself_and_its_versions_do() {
    let home = Home::new();
    let equal = home.json(&["policy", "diff", "play", "play"]);
    assert_eq!(
        (&equal["equal"], &equal["changes"], &equal["touched"]),
        (&json!(true), &json!([]), &json!([]))
    );
    assert!(home.done(&["policy", "diff", "play", "play"]).contains("no difference"));
    let told = home
        .run(&["policy", "diff", "schedule_run@1", "schedule_run@2"])
        .exits(1);
    assert!(told.out.contains("+ supervisor_unknown"), "{}", told.out);
    let document = home
        .run(&["policy", "diff", "schedule_run@1", "schedule_run@2", "--json"])
        .exits(1)
        .document();
    assert_eq!(
        (&document["a"]["version"], &document["equal"]),
        (&json!("1.0.0"), &json!(false))
    );
    home.run(&["policy", "diff", "play", "webhook"]).exits(64);
    home.run(&["policy", "diff", "play", "nothing@1"]).exits(2);
}

#[test]
fn the_live_entities_that_a_change_would_touch_are_told_by_status() {
    let home = Home::new();
    for id in ["a", "b"] {
        home.done(&["create", "play", "--id", id]);
    }
    let status = home.json(&["show", "a"])["status"]
        .as_str()
        .expect("a status")
        .to_owned();
    home.done(&["create", "session", "--id", "s"]);
    let stranding = changed(&home, |play| {
        let ends: Vec<String> = play
            .statuses
            .iter()
            .filter(|s| s.terminal)
            .map(|s| s.name.clone())
            .collect();
        play.edges.retain(|edge| edge.from != status && ends.contains(&edge.to));
        play.edges.push(runwarden_host::model::Edge {
            from: status.clone(),
            to: status.clone(),
            ..play.edges[0].clone()
        });
        play.execution = None;
        play.kill.clear();
        // Every status must be reached: as one that a play may begin in.
        for one in &mut play.statuses {
            one.initial = true;
        }
    });
    let document = home
        .run(&["policy", "diff", "play", &stranding, "--json"])
        .exits(1)
        .document();
    assert_eq!(
        document["touched"],
        json!([{"status": status, "count": 2, "examples": ["play/b", "play/a"], "prospect": "stranded",
                "loses_every_end": true}])
    );
    let told = home.run(&["policy", "diff", "play", &stranding]).exits(1);
    assert!(told.out.contains("every way to an end would be lost"), "{}", told.out);
}
