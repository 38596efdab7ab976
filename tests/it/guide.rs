//! What the guide for authors of policies tells to type, and what that answers. `BLESS=1` writes the answers down.

use std::path::Path;

use crate::authoring::of_the_toolchain;
use crate::console::replayed;
use crate::harness::Home;

#[test]
fn the_guide_leads_from_nothing_to_a_policy_that_was_tried_judged_moved_and_taken_back() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/writing-a-policy.md");
    let shown = std::fs::read_to_string(&guide).expect("it is there");
    let home = Home::new();
    let happens = replayed(&home, &of_the_toolchain(), &shown);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&guide, &happens).expect("the guide is ours");
    }
    let shown = std::fs::read_to_string(&guide).expect("it is there");
    assert_eq!(shown, happens, "BLESS=1 writes what happens");
}
