//! Trees of every shape that has ever escaped a kill: none of it is left, round after round, and the proof is recorded.

use serde_json::json;

use crate::harness::Home;

/// Rounds of each shape when all tests are run; the long suite (`--ignored`) has a hundred.
const ROUNDS: usize = 2;
const ROUNDS_LONG: usize = 100;

/// Shapes, as shell scripts that another command may follow. `$S` is a program that sleeps and `$H` one that hops; both are known by their path.
const SHAPES: [(&str, &str); 7] = [
    ("double_fork", r#"( ( "$S" 600 & ) & ); "$S" 600 &"#),
    ("session", r#"setsid sh -c '"$0" 600 & "$0" 600' "$S" &"#),
    (
        "deaf",
        r#"trap "" TERM; "$S" 600 & sh -c 'while :; do "$0" 1; done' "$S" &"#,
    ),
    ("stopped", r#""$S" 600 & kill -STOP $!; "$S" 600 &"#),
    ("hopper", r#""$H" & "$S" 600 &"#),
    ("scrubbed", r#"env -i setsid "$S" 600 & env -i "$S" 600 &"#),
    ("crowd", r#"i=0; while [ $i -lt 200 ]; do "$S" 600 & i=$((i+1)); done;"#),
];

/// A tree of a thousand, for the long suite alone.
const THOUSAND: (&str, &str) = (
    "thousand",
    r#"i=0; while [ $i -lt 10 ]; do sh -c 'i=0; while [ $i -lt 99 ]; do "$0" 600 & i=$((i+1)); done; wait' "$S" & i=$((i+1)); done;"#,
);

/// The home with the programs that the shapes are made of.
fn prepared() -> Home {
    let home = Home::new();
    std::os::unix::fs::symlink("/bin/sleep", home.path("sleep")).expect("a link");
    std::fs::write(home.path("hop"), "#!/bin/sh\nsetsid \"$0\" &\n").expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(home.path("hop"), mode).expect("a script of ours");
    home
}

/// Live processes that were started as one of the programs of this home.
fn survivors(home: &Home) -> Vec<String> {
    let marks = ["sleep", "hop"].map(|name| home.path(name).display().to_string());
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let words = |entry: std::fs::DirEntry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        (entry.file_name(), String::from_utf8_lossy(&line).replace('\0', " "))
    };
    let told = processes
        .map(words)
        .filter(|(_, line)| marks.iter().any(|mark| line.contains(mark)));
    told.map(|(pid, line)| format!("{} {line}", pid.display())).collect()
}

#[track_caller]
fn check((shape, script): (&str, &str), contain: &str, rounds: usize) {
    let home = prepared();
    for round in 0..rounds {
        let id = format!("{shape}-{round}");
        let text = format!(
            "S={} H={} told={}; {script} echo $$ > $told; wait",
            home.path("sleep").display(),
            home.path("hop").display(),
            home.path(&id).display(),
        );
        home.detach(&id, &["--contain", contain, "--", "sh", "-c", &text]);
        home.told(&id);
        let killed = home
            .run(&["kill", &id, "--grace", "100ms", "--json"])
            .exits(0)
            .document();
        assert_eq!(
            survivors(&home),
            Vec::<String>::new(),
            "{shape}, {contain}, round {round}"
        );
        let target = &killed["targets"][0];
        assert_eq!(
            (&target["stopped"], &target["survivors"]),
            (&json!(true), &json!([])),
            "{target}"
        );
        let shown = home.json(&["show", &id]);
        let proof = shown["reason"]["evidence"][0]["proof"].as_str();
        assert!(matches!(proof, Some("cgroup_empty" | "subreaper_echild")), "{shown}");
        assert_eq!(
            (&shown["status"], &shown["runtime"]["state"]),
            (&json!("cancelled"), &json!("stopped"))
        );
    }
}

#[test]
fn no_shape_survives_a_kill_where_the_shim_alone_holds_it() {
    SHAPES.iter().for_each(|shape| check(*shape, "subreaper", ROUNDS));
}

#[test]
fn no_shape_survives_a_kill_where_the_best_that_is_to_be_had_holds_it() {
    SHAPES.iter().for_each(|shape| check(*shape, "auto", ROUNDS));
}

#[test]
#[ignore = "a hundred rounds of each take minutes"]
fn no_shape_survives_a_hundred_kills() {
    for contain in ["subreaper", "auto"] {
        SHAPES.iter().for_each(|shape| check(*shape, contain, ROUNDS_LONG));
        check(THOUSAND, contain, ROUNDS_LONG);
    }
}
