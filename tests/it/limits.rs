//! Limits that an operator raises for one component: in the file's check, in every call, in what is told of them.

use runwarden_test_guests::{Mode, hostile};
use serde_json::{Value, json};

use crate::harness::Home;

impl Home {
    fn component(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file");
        path.to_string_lossy().into_owned()
    }

    fn installed(&self, name: &str) -> Value {
        let listed = self.json(&["policy", "ls"]);
        let mut components = listed.as_array().into_iter().flatten();
        components.find(|row| row["name"] == name).expect("it is there").clone()
    }
}

/// The same component, larger: custom sections are for whoever wants them.
fn padded(component: &[u8], to_bytes: usize) -> Vec<u8> {
    const HEADER_BYTES: usize = 7;
    let mut padded = component.to_vec();
    let content = to_bytes - component.len();
    let length = u32::try_from(content - HEADER_BYTES + 2).expect("a small section");
    padded.push(0);
    // LEB128 in four bytes, then a name of one letter.
    padded.extend((0..3).map(|place| ((length >> (7 * place)) & 0x7f) as u8 | 0x80));
    padded.push((length >> 21) as u8);
    padded.extend([1, b'x']);
    padded.resize(to_bytes, 0);
    padded
}

#[test]
fn a_component_that_reaches_a_limit_is_refused_with_the_option_that_raises_it() {
    let home = Home::new();
    for (mode, option) in [(Mode::DescribeTakesMemory, "--memory"), (Mode::DescribeLoops, "--fuel")] {
        let path = home.component("gadget.wasm", &hostile(mode));
        for command in ["install", "show"] {
            // A loop has time enough for its fuel on any machine.
            let answer = home.run(&["policy", command, &path, "--wall", "10s"]).exits(65);
            answer.hints(&format!("runwarden policy install FILE {option} …"));
        }
    }
    let path = home.component("large.wasm", &padded(&hostile(Mode::Honest), 9 << 20));
    let answer = home.run(&["policy", "install", &path]).exits(65);
    assert!(answer.err.contains("9437184 bytes, at most 8388608"), "{}", answer.err);
    answer.hints("--component-size");
}

#[test]
fn a_limit_is_raised_as_far_as_its_ceiling_and_never_lowered() {
    let home = Home::new();
    let path = home.component("gadget.wasm", &hostile(Mode::Honest));
    for wrong in [
        ["--memory", "513MiB"],
        ["--memory", "15MiB"],
        ["--component-size", "65MiB"],
        ["--fuel", "1"],
        ["--wall", "11s"],
        ["--compile-time", "11m"],
        ["--compile-memory", "9GiB"],
    ] {
        let answer = home.run(&["policy", "install", &path, wrong[0], wrong[1]]).exits(64);
        assert!(answer.err.contains("is not between"), "{wrong:?}: {}", answer.err);
    }
    home.run(&["policy", "show", "gadget"]).exits(2);
    home.run(&["policy", "show", "play", "--memory", "32MiB"])
        .exits(64)
        .hints("policy install FILE");
}

#[test]
fn raised_limits_are_those_of_one_component_are_told_and_stay_until_it_is_removed() {
    let home = Home::new();
    let path = home.component("large.wasm", &padded(&hostile(Mode::Honest), 9 << 20));
    let raised = json!({"memory_bytes": 32 << 20, "component_bytes": 16 << 20, "wall_ms": 1_500});
    let options = ["--component-size", "16MiB", "--memory", "32MiB", "--wall", "1500ms"];
    let looked_at = home.json(&[&["policy", "show", &path], &options[..]].concat());
    assert_eq!(looked_at["raised"], raised);
    home.json(&[&["policy", "install", &path, "--activate"], &options[..]].concat());
    assert_eq!(home.installed("gadget")["raised"], raised);
    assert_eq!(home.installed("play")["raised"], json!({}));
    let shown = home.json(&["policy", "show", "gadget"]);
    assert_eq!(
        (&shown["limits"]["memory_bytes"], &shown["limits"]["wall_ms"]),
        (&json!(32 << 20), &json!(1_500))
    );
    assert_eq!(
        home.json(&["policy", "show", "play"])["limits"]["memory_bytes"],
        json!(16 << 20)
    );
    let words = "memory 32.0 MiB, component size 16.0 MiB, wall 1.5 s";
    let wide = |command: &[&str]| home.run_with(command, &[("COLUMNS", "200")]).exits(0).out;
    assert!(wide(&["policy", "show", "gadget"]).contains(words));
    assert!(wide(&["policy", "ls"]).contains(words));
    let audited = home.json(&["history", "--admin"]);
    let mut events = audited.as_array().into_iter().flatten();
    assert!(
        events.any(|event| event["action"] == "policy_installed" && event["details"]["limits"] == raised),
        "{audited}"
    );
    // The same file is known by its digest, and what it was given is given once.
    assert_eq!(home.json(&["policy", "show", &path])["raised"], raised);
    home.json(&["policy", "install", &path, "--memory", "64MiB"]);
    assert_eq!(home.installed("gadget")["raised"]["memory_bytes"], json!(64 << 20));
    assert_eq!(home.installed("gadget")["raised"]["wall_ms"], json!(1_500));
}

#[test]
fn every_call_has_the_limits_that_were_raised_for_its_component() {
    let home = Home::new();
    let path = home.component("gadget.wasm", &hostile(Mode::GuardLoops));
    home.json(&[
        "policy",
        "install",
        &path,
        "--activate",
        "--fuel",
        "60000000",
        "--wall",
        "10s",
    ]);
    home.done(&["create", "gadget", "--id", "g-1"]);
    let asked = ["transition", "g-1", "held", "--reason", "gadget.held.asked"];
    let refused = home.run(&asked).exits(5).out;
    assert!(refused.contains("fuel of 60000000"), "{refused}");
    home.json(&["policy", "install", &path, "--fuel", "70000000"]);
    let refused = home.run(&asked).exits(5).out;
    assert!(refused.contains("fuel of 70000000"), "{refused}");
}
