//! The committed bindings are what the generator makes of `wit/`.
//!
//! `BLESS=1 cargo test -p runwarden-kit --test bindings` writes them anew.

use std::path::{Path, PathBuf};

use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};
use wit_bindgen_rust::{Opts, WithOption};

/// Packages in the order in which they depend on each other.
const PACKAGES: &[&str] = &["types", "host", "policy", "notify"];

/// One world for each interface that a component may export; the first one owns the shared types.
const WORLDS: &[(&str, &str)] = &[
    ("policy", "lifecycle-policy"),
    ("policy", "guard-policy"),
    ("policy", "execution-policy"),
    ("policy", "health-policy"),
    ("policy", "migrate-policy"),
    ("notify", "handler"),
];

/// Interfaces that every later world takes from the first.
const SHARED: &[(&str, &str)] = &[
    (
        "runwarden:types/types@0.1.0",
        "crate::bindings::lifecycle_policy::runwarden::types::types",
    ),
    (
        "runwarden:host/diagnostics@0.1.0",
        "crate::bindings::lifecycle_policy::runwarden::host::diagnostics",
    ),
];

#[test]
fn the_committed_bindings_are_what_the_generator_makes_of_the_wit() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut stale = Vec::new();
    for (index, (package, world)) in WORLDS.iter().enumerate() {
        let path = bindings_dir().join(format!("{}.rs", world.replace('-', "_")));
        let made = generate(package, world, index > 0);
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        if found == made {
            continue;
        }
        if bless {
            std::fs::write(&path, made).expect("write the bindings");
        } else {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "stale: {stale:?}; run `BLESS=1 cargo test -p runwarden-kit --test bindings`"
    );
}

fn generate(package: &str, world: &str, shares_types: bool) -> String {
    let mut resolve = Resolve::default();
    let mut chosen = None;
    for name in PACKAGES {
        let (id, _) = resolve.push_dir(wit_dir().join(name)).expect("the WIT package parses");
        if *name == package {
            chosen = Some(id);
        }
    }
    let chosen = chosen.expect("the package is listed");
    let world = resolve.select_world(&[chosen], Some(world)).expect("the world exists");
    let mut files = Files::default();
    options(shares_types)
        .build()
        .generate(&mut resolve, world, &mut files)
        .expect("the bindings are generated");
    let (_, contents) = files.iter().next().expect("one file is generated");
    String::from_utf8(contents.to_vec()).expect("Rust source is UTF-8")
}

fn options(shares_types: bool) -> Opts {
    let with = if shares_types { SHARED } else { &[] };
    Opts {
        format: true,
        generate_all: true,
        generate_unused_types: true,
        pub_export_macro: true,
        // The section that tells the imports is kept by the export macro; nothing else needs a link helper.
        disable_custom_section_link_helpers: true,
        disable_run_ctors_once_workaround: true,
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        with: with
            .iter()
            .map(|(from, to)| ((*from).to_owned(), WithOption::Path((*to).to_owned())))
            .collect(),
        ..Opts::default()
    }
}

fn wit_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

fn bindings_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bindings")
}
