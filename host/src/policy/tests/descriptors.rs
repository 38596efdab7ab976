//! Descriptors that were damaged: whatever passes the check can be lived with, along every pair of its statuses.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::guests::pin_to;
use super::random::{Random, rounds};
use crate::model::{
    Actor, Create, Descriptor, Lifecycle, Reason, Severity, Timestamp, Transition, author, check, create, decide,
};

#[test]
fn random_damage_to_a_descriptor_never_panics_the_rules() {
    let seeds: Vec<Value> = runwarden_bundled::POLICIES
        .iter()
        .map(|bundled| serde_json::from_str(bundled.descriptor).unwrap())
        .collect();
    for seed in rounds(2_000) {
        let random = &mut Random::new(seed);
        let mut value = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(3) {
            damage(&mut value, &seeds, random);
        }
        let Ok(descriptor) = serde_json::from_value::<Descriptor>(value) else {
            continue;
        };
        let findings = check(&descriptor);
        if findings.iter().all(|finding| finding.severity != Severity::Error) {
            live(&descriptor, random);
        }
    }
}

/// Decides on every pair of statuses, as often as there are.
fn live(descriptor: &Descriptor, random: &mut Random) {
    const PAIRS_MAX: usize = 400;
    let lifecycle = Lifecycle::new(descriptor.clone());
    assert_eq!(
        serde_json::from_str::<Descriptor>(&descriptor.canonical()).unwrap(),
        *descriptor
    );
    let mut command = Create::new(lifecycle.kind(), "e-1", Actor::new("operator", "test"));
    let codes = &descriptor.reason_codes;
    command.reason.code = codes.first().map(|code| code.code.clone()).unwrap_or_default();
    let pin = pin_to("0".repeat(64));
    let Ok(made) = create(&lifecycle, &pin, &command, "store", Timestamp::from_ms(1_000)) else {
        return;
    };
    let names: Vec<&str> = descriptor.statuses.iter().map(|status| status.name.as_str()).collect();
    let pairs = names.iter().flat_map(|from| names.iter().map(move |to| (*from, *to)));
    for (from, to) in pairs.take(PAIRS_MAX) {
        let mut entity = made.entity.clone();
        entity.enter(&lifecycle, from);
        let code = codes
            .get(random.below(codes.len()))
            .map_or("", |code| code.code.as_str());
        let asked = Transition::new(to, Reason::code(code), Actor::new("system", "test"));
        // Total: whatever it says, it says something.
        let _ = decide(&lifecycle, &entity, &asked, "store", Timestamp::from_ms(2_000));
    }
}

/// One change somewhere in a value: a part is left out, said twice, taken from elsewhere or made another.
fn damage(value: &mut Value, others: &[Value], random: &mut Random) {
    let deeper = random.below(4) != 0;
    match value {
        Value::Object(map) if deeper && !map.is_empty() => {
            let place = random.below(map.len());
            let inner = map.values_mut().nth(place).unwrap();
            damage(inner, others, random);
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let place = random.below(list.len());
            match random.below(4) {
                0 => drop(list.remove(place)),
                1 => list.push(list[place].clone()),
                _ => damage(&mut list[place], others, random),
            }
        }
        _ => *value = part(&others[random.below(others.len())], random),
    }
}

/// A part of another descriptor, or a value that none has.
fn part(other: &Value, random: &mut Random) -> Value {
    match random.below(8) {
        0 => Value::Null,
        1 => (random.next().cast_signed() >> random.below(64)).into(),
        2 => true.into(),
        3 => "".into(),
        4 => "\u{1b}[31m ünï".repeat(1 + random.below(2_000)).into(),
        _ => inner(other, random).clone(),
    }
}

fn inner<'a>(value: &'a Value, random: &mut Random) -> &'a Value {
    let below: Option<&Value> = match value {
        Value::Object(map) if !map.is_empty() => map.values().nth(random.below(map.len())),
        Value::Array(list) if !list.is_empty() => list.get(random.below(list.len())),
        _ => None,
    };
    match below {
        Some(below) if random.below(3) != 0 => inner(below, random),
        Some(below) => below,
        None => value,
    }
}

#[test]
fn random_damage_to_a_table_never_panics_its_reader() {
    let seeds = tables();
    for seed in rounds(2_000) {
        let random = &mut Random::new(seed);
        let mut text = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(4) {
            rewrite(&mut text, &seeds, random);
        }
        if let Ok(authored) = author(&text) {
            live(&authored.descriptor, random);
        }
    }
}

/// The tables of templates and examples.
fn tables() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut open, mut found) = (vec![root.join("cli/templates"), root.join("examples")], Vec::new());
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.ends_with("lifecycle.toml") {
                found.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    assert!(!found.is_empty(), "a template is a table");
    found.sort();
    found
}

/// One change in a text: a line or a word is left out, said twice, taken from elsewhere or made another.
fn rewrite(text: &mut String, others: &[String], random: &mut Random) {
    let split = if random.below(2) == 0 { '\n' } else { ' ' };
    let mut parts: Vec<&str> = text.split(split).collect();
    let elsewhere: Vec<&str> = others[random.below(others.len())].split(split).collect();
    let at = random.below(parts.len());
    match random.below(5) {
        0 => drop(parts.remove(at)),
        1 => parts.insert(at, parts[at]),
        2 => parts[at] = "\u{1b}[31m = [[ \"",
        3 => parts[at] = "9223372036854775808",
        _ => parts.insert(at, elsewhere[random.below(elsewhere.len())]),
    }
    *text = parts.join(&split.to_string());
}
