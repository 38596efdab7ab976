//! Who vouches for a component: keys, signatures, what the settings require, and image layouts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use runwarden_test_guests::{Mode, REVIEW, hostile};
use serde_json::{Value, json};

use crate::harness::{Answer, Home};

/// A home with a component in `review.wasm` and a key in `ann.key`; the key as settings write it.
fn home() -> (Home, String) {
    let home = Home::new();
    std::fs::write(home.path("review.wasm"), REVIEW).expect("a file");
    let key = home.json(&["policy", "keygen", "ann.key"])["key"].clone();
    (home, key.as_str().expect("text").to_owned())
}

fn settings(home: &Home, text: &str) {
    let directory = home.path(".config/runwarden");
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::write(directory.join("settings.toml"), text).expect("a file");
}

fn trusting(home: &Home, name: &str, key: &str) {
    settings(
        home,
        &format!("[policies]\nrequire_signature = true\n[policies.keys]\n{name} = \"{key}\"\n"),
    );
}

fn sign(home: &Home, key: &str) {
    home.done(&["policy", "sign", "review.wasm", "--key", key]);
}

fn install(home: &Home) -> Answer {
    home.run(&["policy", "install", "review.wasm"])
}

/// Who signed what, by names of components.
fn signers(home: &Home, name: &str) -> Value {
    let listed = home.json(&["policy", "ls"]);
    let mut rows = listed.as_array().expect("an array").iter();
    let row = rows.find(|row| row["name"] == name).expect("it is installed");
    let names = row["signed_by"].as_array().expect("an array").iter();
    names.map(|signer| signer["name"].clone()).collect()
}

#[test]
fn a_key_is_private_and_never_overwritten() {
    let (home, key) = home();
    let mode = std::fs::metadata(home.path("ann.key"))
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let before = std::fs::read(home.path("ann.key")).expect("it is there");
    home.run(&["policy", "keygen", "ann.key"])
        .exits(4)
        .hints("another name");
    assert_eq!(std::fs::read(home.path("ann.key")).expect("it is there"), before);
    let public = std::fs::read_to_string(home.path("ann.key.pub")).expect("it is there");
    assert!(
        public.starts_with("untrusted comment: signify public key\nRW"),
        "{public}"
    );
    home.done(&["policy", "keygen", "bob.sec"]);
    assert!(home.path("bob.pub").exists() && !home.path("bob.sec.pub").exists());
    // Either form of the key is understood.
    trusting(&home, "ann", &key);
    sign(&home, "ann.key");
    install(&home).exits(0);
    let line = public.lines().nth(1).expect("two lines");
    trusting(&home, "ann", &format!("ed25519:{line}"));
    install(&home).exits(0);
}

#[test]
fn what_is_signed_by_a_known_key_is_let_in_and_told_by_whom() {
    let (home, key) = home();
    trusting(&home, "ann", &key);
    install(&home).exits(65).hints("policy sign FILE --key KEY");
    home.run(&["policy", "show", "review"]).exits(2);
    sign(&home, "ann.key");
    install(&home).exits(0);
    assert_eq!(signers(&home, "review"), json!(["ann"]));
    assert_eq!(signers(&home, "play"), json!([]));
    assert!(home.done(&["policy", "show", "review"]).contains("signed by ann"));
    let narrow = home.run_with(&["policy", "ls"], &[("COLUMNS", "40")]).exits(0).out;
    assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    assert!(home.done(&["policy", "ls"]).contains("SIGNED BY"));
    let audit = home.json(&["history", "--admin"]);
    let installed = audit.as_array().expect("an array").iter();
    let mut installed = installed.filter(|event| event["action"] == "policy_installed");
    assert!(
        installed.any(|event| event["details"]["signed_by"] == json!(["ann"])),
        "{audit}"
    );
    // The policies that ship need nobody who vouches for them.
    home.done(&["policy", "activate", "schedule_run@1", "--reason", "to see"]);
}

#[test]
fn a_signature_by_somebody_else_or_of_something_else_is_refused_wherever_it_is_not_required() {
    let (home, key) = home();
    sign(&home, "ann.key");
    install(&home).exits(65).hints("[policies.keys]");
    home.json(&["policy", "keygen", "bob.key"]);
    settings(&home, &format!("[policies.keys]\nann = \"{key}\"\n"));
    sign(&home, "bob.key");
    install(&home).exits(65).hints("[policies.keys]");
    sign(&home, "ann.key");
    std::fs::write(home.path("review.wasm"), hostile(Mode::Honest)).expect("a file");
    let refused = install(&home).exits(65);
    assert!(
        refused.err.contains("the signature by ann is not of these bytes"),
        "{}",
        refused.err
    );
    std::fs::write(home.path("review.wasm.sig"), "untrusted comment: x\nRWQhello\n").expect("a file");
    install(&home).exits(65);
    home.run(&["policy", "install", "review.wasm", "--signature", "absent.sig"])
        .exits(65);
    std::fs::remove_file(home.path("review.wasm.sig")).expect("it is there");
    install(&home).exits(0);
    assert_eq!(signers(&home, "gadget"), json!([]));
}

#[test]
fn what_was_installed_before_is_put_in_force_only_if_somebody_vouches_for_it_now() {
    let (home, key) = home();
    install(&home).exits(0);
    let activate = || home.run(&["policy", "activate", "review@2", "--reason", "to see"]);
    activate().exits(0);
    trusting(&home, "ann", &key);
    activate().exits(65).hints("policy sign");
    home.run(&["policy", "migrate", "review", "--to", "2"]).exits(65);
    // Installed again with its signature, it has one.
    sign(&home, "ann.key");
    install(&home).exits(0);
    activate().exits(0);
    // A key that is taken away vouches for nothing any more.
    home.json(&["policy", "keygen", "bob.key"]);
    settings(&home, "[policies]\nrequire_signature = true\n");
    activate().exits(65);
    let unknown = home.done(&["policy", "show", "review"]);
    assert!(unknown.contains("signed by key "), "{unknown}");
}

#[test]
fn whom_to_trust_is_said_by_the_users_own_settings_and_nothing_is_let_in_that_they_may_not_mean() {
    let (home, key) = home();
    sign(&home, "ann.key");
    let directory = home.path(".runwarden");
    std::fs::create_dir_all(&directory).expect("a directory");
    let project = |text: &str| std::fs::write(directory.join("settings.toml"), text).expect("a file");
    project(&format!("[policies.keys]\nann = \"{key}\"\n"));
    install(&home).exits(65).hints("[policies.keys]");
    let shown = home.done(&["notify", "show"]);
    assert!(shown.contains("from your own settings alone"), "{shown}");
    for (text, words) in [
        (
            "[policies]\nrequire_signatures = true\n",
            "did you mean `require_signature`?",
        ),
        ("[policies]\nrequire_signature = \"yes\"\n", "true or false"),
        ("policies = 3\n", "a table"),
        ("[policies.keys]\nann = \"hello\"\n", "is no key"),
        ("[policies.keys]\nann = \"./ann.key.pub\"\n", "a file is not read here"),
        ("policies = [\n", "no TOML"),
    ] {
        settings(&home, text);
        let refused = install(&home).exits(65);
        assert!(refused.err.contains(words), "{text}: {}", refused.err);
        refused.hints("settings.toml");
    }
    settings(&home, "[polices]\n");
    let warned = home.run(&["policy", "install", "review.wasm"]).exits(65).err;
    assert!(warned.contains("did you mean `policies`?"), "{warned}");
}

#[test]
fn nothing_but_a_component_is_signed_and_nothing_but_a_secret_key_signs() {
    let (home, _) = home();
    std::fs::write(home.path("letter"), "I owe you nothing").expect("a file");
    home.run(&["policy", "sign", "letter", "--key", "ann.key"]).exits(65);
    home.run(&["policy", "sign", "review.wasm", "--key", "ann.key.pub"])
        .exits(65);
    home.run(&["policy", "sign", "review.wasm", "--key", "absent"])
        .exits(65);
    home.run(&["policy", "sign", "review.wasm"]).exits(64);
    assert!(!home.path("review.wasm.sig").exists());
    home.done(&[
        "policy",
        "sign",
        "review.wasm",
        "--key",
        "ann.key",
        "--signature",
        "elsewhere.sig",
    ]);
    assert!(home.path("elsewhere.sig").exists());
}

/// The files below a directory, with their contents.
fn tree(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path
                    .strip_prefix(directory)
                    .expect("it is below")
                    .to_string_lossy()
                    .into_owned();
                found.push((name, std::fs::read(&path).expect("a file")));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn an_image_layout_carries_a_component_with_its_signature_from_home_to_home() {
    let (home, key) = home();
    trusting(&home, "ann", &key);
    sign(&home, "ann.key");
    install(&home).exits(0);
    let out = home.json(&["policy", "export", "review@2", "layout"]);
    assert_eq!(out["signatures"], json!(1));
    let files = tree(&home.path("layout"));
    let document = |name: &str| -> Value {
        let found = files.iter().find(|(path, _)| path == name);
        serde_json::from_slice(&found.expect("it is there").1).expect("JSON")
    };
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().expect("text").replace("sha256:", "");
        format!("blobs/sha256/{digest}")
    };
    assert_eq!(document("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}));
    let manifest = document(&blob(&document("index.json")["manifests"][0]));
    assert_eq!(
        (&manifest["artifactType"], &manifest["layers"][0]["mediaType"]),
        (&json!("application/wasm"), &json!("application/wasm"))
    );
    assert_eq!(manifest["annotations"]["io.github.runwarden.kind"], "review");
    assert_eq!(manifest["annotations"]["org.opencontainers.image.version"], "2.0.0");
    let config = document(&blob(&manifest["config"]));
    assert_eq!(config["layerDigests"], json!([manifest["layers"][0]["digest"]]));
    home.run(&["policy", "export", "review@2", "layout"])
        .exits(4)
        .hints("not there yet");
    home.done(&["policy", "export", "review", "again"]);
    assert_eq!(
        tree(&home.path("again")),
        files,
        "the same component makes the same layout"
    );
    let other = Home::new();
    trusting(&other, "ann", &key);
    let layout = home.path("layout").to_string_lossy().into_owned();
    other.done(&["policy", "install", &layout]);
    assert_eq!(signers(&other, "review"), json!(["ann"]));
    other
        .run(&["policy", "install", &layout, "--signature", "x.sig"])
        .exits(64);
    let component = home.path("layout").join(blob(&manifest["layers"][0]));
    let mut bytes = std::fs::read(&component).expect("it is there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&component, bytes).expect("it is written");
    let refused = other.run(&["policy", "install", &layout]).exits(65).err;
    assert!(refused.contains("it was changed"), "{refused}");
    other.run(&["policy", "install", "."]).exits(65);
}
