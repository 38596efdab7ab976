//! What the command line says of hostile files: each way in which a file is refused, as people and as scripts read it.

use runwarden_test_guests::{Asked, corpus};

use crate::harness::{Answer, Home};

/// Cases of the corpus, one for each way.
const SHOWN: [&str; 12] = [
    "a shell script",
    "a core module",
    "half a component",
    "every interface of WASI 0.2 wanted",
    "a later line",
    "functions of another name",
    "diagnostics with another type",
    "trap: a division by zero",
    "table elements without end",
    "descriptor: a text that is not UTF-8",
    "descriptor: zeros",
    "hostile guest: DescribeHasProblems",
];

#[test]
fn each_way_to_refuse_a_file_says_what_to_do_next() {
    let home = Home::new();
    let corpus = corpus();
    let mut told = String::new();
    for name in SHOWN {
        let case = corpus
            .iter()
            .find(|case| case.name == name)
            .expect("a case of the corpus");
        assert_eq!(case.asked, Asked::Install, "{name}");
        let file = home.path("component.wasm");
        std::fs::write(&file, &case.bytes).expect("a file");
        let file = file.to_string_lossy();
        let asked = |more: &[&str]| -> Answer { home.run(&[&["policy", "install", &file], more].concat()).exits(65) };
        let people = asked(&[]);
        assert!(people.err.contains("hint: "), "{name}: {}", people.err);
        assert_eq!(people.out, "", "{name}");
        let error = asked(&["--json"]).document();
        assert!(error["error"]["hints"][0].is_string(), "{name}: {error}");
        told += &format!("## {name}\n{}\n", people.err);
    }
    assert_eq!(
        home.json(&["policy", "ls"]).as_array().expect("a list").len(),
        bundled(),
        "nothing was installed"
    );
    let filters = [
        (r"component `[0-9a-f]{12}`", "component `DIGEST`"),
        (r"offset 0x[0-9a-f]+", "offset PLACE"),
    ];
    insta::with_settings!({filters => filters}, { insta::assert_snapshot!("hostile_files", told); });
}

/// How many components a new home has.
fn bundled() -> usize {
    let listed = Home::new().json(&["policy", "ls"]);
    listed.as_array().expect("a list").len()
}
