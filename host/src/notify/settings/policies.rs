//! `[policies]` of the user's own settings: whose signatures count.

use std::path::Path;

use serde_json::Value;

use super::entry::{bad_name, is_name};
use super::problem::Problem;
use super::table::Table;
use crate::model::{Fields, Layer};
use crate::provenance::{PublicKey, Trust};

/// What a settings file says of whom to trust; with a problem in it, nothing of it counts.
pub(super) fn trust(document: &Fields, layer: Layer, base: Option<&Path>) -> (Trust, Vec<Problem>) {
    let mut trust = Trust::default();
    let mut top = Table::new("the settings", document, base);
    let Some(values) = top.table("policies") else {
        return (trust, top.problems());
    };
    if layer != Layer::Global {
        // A checkout brings its settings along: whoever wrote the policy in it could have written the key.
        top.problem(
            "policies_not_trusted_here",
            "`policies` is read from your own settings alone, not from a project's",
        );
        return (trust, top.problems());
    }
    let mut table = Table::new("policies", values, base);
    table.only(&["require_signature", "keys"], "policies_have_unknown_keys");
    trust.require_signature = table.flag("require_signature");
    for (name, value) in table.table("keys").into_iter().flatten() {
        match value.as_str().and_then(PublicKey::from_setting) {
            Some(key) if is_name(name) => {
                trust.keys.insert(name.clone(), key);
            }
            Some(_) => table.add(vec![bad_name("key", name)]),
            None => table.add(vec![no_key(name, value)]),
        }
    }
    (trust, table.problems())
}

fn no_key(name: &str, value: &Value) -> Problem {
    let is_file = value
        .as_str()
        .is_some_and(|text| text.contains('/') || text.contains('\n'));
    let what = if is_file { "; a file is not read here" } else { "" };
    let message =
        format!("`{name}` of policies.keys is no key: write \"ed25519:BASE64\", as `policy keygen` tells it{what}");
    Problem::new("key_not_understood", message)
}
