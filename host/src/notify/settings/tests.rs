//! Settings as tables: what a piece of text says, and what the layers come to.

use std::path::Path;

use serde_json::json;

use super::*;
use crate::model::{DurationMs, HandlerDescriptor, Layer, SecretReference, Source, Transport};

mod vectors;

/// The settings of a project at `/p`.
fn project(text: &str) -> LayerSettings {
    read(Layer::Project, Path::new("/p/.runwarden/settings.toml"), text)
}

/// The handler `x` of these lines.
fn of_lines(lines: &str) -> Entry {
    let settings = project(&format!("[notify.handlers.x]\n{lines}"));
    assert!(settings.problems.is_empty(), "{:?}", settings.problems);
    settings.entries["x"].clone()
}

/// The codes of everything that is wrong with a handler of these lines.
#[track_caller]
fn check_refused(lines: &str, codes: &[&str]) {
    let entry = of_lines(lines);
    let found: Vec<&str> = entry.problems.iter().map(|problem| problem.code.as_str()).collect();
    assert_eq!(found, codes, "{lines}\n{:?}", entry.problems);
    assert_eq!(entry.state, State::Disabled, "{lines}");
}

#[track_caller]
fn configured(lines: &str) -> Configured {
    match of_lines(lines) {
        Entry {
            state: State::Configured(configured),
            ..
        } => configured,
        other => panic!("{lines}: {other:?}"),
    }
}

fn exec(configured: &Configured) -> &[String] {
    match &configured.destinations["exec"].transport {
        Transport::Exec { argv, .. } => argv,
        other => panic!("{other:?}"),
    }
}

const FULL: &str = r#"
state = "configured"
component = "webhook@0.1"
filter = { kinds = ["run"], statuses = ["failed"] }
config = { deadline = 5 }
timeout = "1m"
[notify.handlers.x.destinations.hook]
transport = "webhook"
url = "https://example.org/hooks"
secret_env = ["NEW", "OLD"]
secret_file = "keys/hook"
ca_file = "/etc/ca.pem"
[notify.handlers.x.destinations.journal]
transport = "file"
path = "../ends.jsonl"
timeout = 2
[notify.handlers.x.destinations.program]
transport = "exec"
argv = ["./tell", "{payload}"]
env = ["DISPLAY"]
"#;

#[test]
fn the_long_form_says_component_filter_and_destinations() {
    let configured = configured(FULL);
    assert_eq!(configured.component, "webhook@0.1");
    assert_eq!(configured.filter.kinds, ["run"]);
    assert_eq!(configured.filter.statuses, ["failed"]);
    assert_eq!(json!(configured.config), json!({"deadline": 5}));
    let hook = &configured.destinations["hook"];
    assert_eq!(hook.timeout_ms, DurationMs::from_ms(60_000));
    let env = |name: &str| SecretReference::Env(name.to_owned());
    let expected = Transport::Webhook {
        url: Source::Given("https://example.org/hooks".to_owned()),
        secrets: vec![
            env("NEW"),
            env("OLD"),
            SecretReference::File("/p/.runwarden/keys/hook".to_owned()),
        ],
        allow_private: false,
        ca_file: Some("/etc/ca.pem".to_owned()),
    };
    assert_eq!(hook.transport, expected);
    let journal = &configured.destinations["journal"];
    assert_eq!(journal.timeout_ms, DurationMs::from_ms(2_000));
    let path = "/p/.runwarden/../ends.jsonl".to_owned();
    assert_eq!(journal.transport, Transport::File { path });
    let expected = Transport::Exec {
        argv: vec!["/p/.runwarden/tell".to_owned(), "{payload}".to_owned()],
        env: vec!["DISPLAY".to_owned()],
    };
    assert_eq!(configured.destinations["program"].transport, expected);
}

#[test]
fn what_a_binding_keeps_is_read_again_as_it_was() {
    for lines in [
        FULL,
        "argv = [\"/bin/x\", \"a b\"]\nenv = [\"A\"]",
        "command = \"notify-send done\"",
    ] {
        let configured = configured(lines);
        let again = entry(&configured.settings(), None);
        assert_eq!(again.problems, [], "{lines}");
        assert_eq!(again.state, State::Configured(configured), "{lines}");
    }
}

#[test]
fn the_short_form_is_a_program() {
    let short = configured("argv = [\"/usr/local/bin/notify\", \"{payload}\"]\ntimeout = \"3s\"");
    assert_eq!(exec(&short), ["/usr/local/bin/notify", "{payload}"]);
    assert_eq!(short.component, "exec");
    assert_eq!(short.destinations["exec"].timeout_ms, DurationMs::from_ms(3_000));
    assert_eq!(
        exec(&configured("command = \"notify-send 'it is done'\"")),
        ["notify-send", "it is done"]
    );
    let settings = project("[notify.handlers]\nx = \"notify-send done\"");
    assert_eq!(settings.entries["x"].problems, []);
}

#[test]
fn every_malformed_shape_has_a_code() {
    check_refused("state = \"configured\"", &["configured_without_component"]);
    check_refused(
        "component = 5",
        &["component_not_a_string", "configured_without_component"],
    );
    check_refused("component = \"webhook\"", &["no_destination"]);
    check_refused("component = \"webhook\"\ndestinations = {}", &["no_destination"]);
    check_refused(
        "component = \"webhook\"\ndestinations = 5",
        &["destinations_not_a_table"],
    );
    check_refused("state = \"cofigured\"\nargv = [\"x\"]", &["state_unknown"]);
    check_refused("argv = [\"x\"]\ntimout = 5", &["handler_has_unknown_keys"]);
    check_refused("timout = 5", &["handler_has_unknown_keys"]);
    check_refused("argv = [\"x\"]\ncomponent = \"webhook\"", &["handler_has_two_forms"]);
    check_refused("argv = [\"x\"]\ncommand = \"x\"", &["argv_and_command"]);
    check_refused("argv = [\"a\\u0000b\"]", &["argv_holds_nul"]);
    check_refused("argv = []", &["command_is_empty"]);
    check_refused("argv = \"a b\"", &["argv_not_a_list_of_strings"]);
    check_refused("command = \"a | b\"", &["command_requires_shell"]);
    check_refused("argv = [\"x\"]\nenv = \"A=b\"", &["env_not_a_variable"]);
    for (timeout, code) in [
        ("\"5x\"", "timeout_not_a_duration"),
        ("-1", "timeout_not_a_duration"),
        ("true", "timeout_not_a_duration"),
        ("0", "timeout_out_of_range"),
        ("\"6m\"", "timeout_out_of_range"),
    ] {
        check_refused(&format!("argv = [\"x\"]\ntimeout = {timeout}"), &[code]);
    }
    check_refused("argv = [\"x\"]\nfilter = {}", &["filter_not_a_table"]);
    check_refused(
        "argv = [\"x\"]\nfilter = { kinds = [] }",
        &["filter_kinds_not_a_list_of_strings"],
    );
    check_refused(
        "argv = [\"x\"]\nfilter = { statuses = \"failed\" }",
        &["filter_statuses_not_a_list_of_strings"],
    );
    check_refused(
        "argv = [\"x\"]\nfilter = { kind = [\"run\"] }",
        &["filter_has_unknown_keys"],
    );
    check_refused("argv = [\"x\"]\nconfig = 5", &["config_not_a_table"]);
}

#[test]
fn every_malformed_destination_has_a_code() {
    for (lines, code) in [
        ("transport = \"smtp\"", "transport_unknown"),
        ("url = \"https://a.example\"", "transport_unknown"),
        ("transport = \"webhook\"", "url_missing"),
        (
            "transport = \"webhook\"\nurl = \"https://a.example\"\nurl_env = \"U\"",
            "url_given_twice",
        ),
        ("transport = \"webhook\"\nurl = \"http://a.example\"", "url_not_usable"),
        ("transport = \"webhook\"\nurl = \"ftp://a.example\"", "url_not_usable"),
        ("transport = \"webhook\"\nurl = \"/hooks\"", "url_not_usable"),
        (
            "transport = \"webhook\"\nurl = \"https://u:p@a.example\"",
            "url_not_usable",
        ),
        ("transport = \"webhook\"\nurl_env = \"A-B\"", "url_env_not_a_variable"),
        (
            "transport = \"webhook\"\nurl_env = \"U\"\nallow_private = 1",
            "allow_private_not_a_boolean",
        ),
        (
            "transport = \"webhook\"\nurl_env = \"U\"\nsecret_env = 5",
            "secret_env_not_a_list_of_strings",
        ),
        (
            "transport = \"webhook\"\nurl_env = \"U\"\nca_file = \"~/ca\"",
            "ca_file_not_a_path",
        ),
        (
            "transport = \"webhook\"\nurl_env = \"U\"\npath = \"/x\"",
            "destination_has_unknown_keys",
        ),
        ("transport = \"file\"", "path_missing"),
        ("transport = \"file\"\npath = \"\"", "path_not_a_path"),
        ("transport = \"exec\"", "argv_not_a_list_of_strings"),
        ("transport = \"exec\"\ncommand = \"a; b\"", "command_requires_shell"),
    ] {
        check_refused(
            &format!("component = \"c\"\n[notify.handlers.x.destinations.d]\n{lines}"),
            &[code],
        );
    }
    check_refused(
        "component = \"c\"\ndestinations = { \"a b\" = {} }",
        &["destination_name_not_usable"],
    );
    check_refused(
        "component = \"c\"\ndestinations = { d = 5 }",
        &["destination_not_a_table"],
    );
}

#[test]
fn a_secret_is_named_and_never_written() {
    for key in ["secret", "token", "password", "signing_secret"] {
        let lines = format!(
            "component = \"webhook\"\n[notify.handlers.x.destinations.d]\ntransport = \"webhook\"\n\
             url = \"https://a.example\"\n{key} = \"s3cr3t\""
        );
        check_refused(&lines, &["secret_is_literal"]);
        let said = format!("{:?}", of_lines(&lines));
        assert!(said.contains("secret_env") && !said.contains("s3cr3t"), "{said}");
    }
    let text = "[notify.handlers.x]\nsecret = \"s3cr3t\nargv = []";
    let said = format!("{:?}", project(text).problems);
    assert!(said.contains("line 2") && !said.contains("s3cr3t"), "{said}");
}

#[test]
fn an_unknown_key_is_told_with_the_one_that_was_meant() {
    for (text, code, words) in [
        ("[notfy]", "settings_have_unknown_keys", "did you mean `notify`?"),
        (
            "[notify]\nhandler = {}",
            "notify_has_unknown_keys",
            "did you mean `handlers`?",
        ),
        (
            "[notify]\ncolour = 1",
            "notify_has_unknown_keys",
            "known are metadata_tags, handlers",
        ),
        (
            "[notify]\nmetadata_tags = \"a\"",
            "metadata_tags_not_a_list_of_strings",
            "a list of strings",
        ),
        ("[notify.handlers.\"a/b\"]", "handler_name_not_usable", "A-Z a-z"),
        ("notify = 5", "notify_not_a_table", "a table"),
        ("[notify", "settings_load_failed", "line 1"),
    ] {
        let problems = project(text).problems;
        assert!(
            matches!(problems.as_slice(), [one] if one.code == code && one.message.contains(words)),
            "{text}: {problems:?}"
        );
    }
}

/// A layer in which the handler `x` has this state, with its layer's word as program.
fn layer(layer: Layer, state: &str) -> LayerSettings {
    let value = match state {
        "absent" => return LayerSettings::empty(layer),
        "broken" => return LayerSettings::broken(layer, Path::new("/f"), "is no TOML"),
        "malformed" => json!({"argv": 5}),
        "configured" => json!({"argv": [layer.word()]}),
        other => json!({"state": other}),
    };
    let mut settings = LayerSettings::empty(layer);
    settings.entries.insert("x".to_owned(), entry(&value, None));
    settings
}

#[test]
fn the_first_layer_that_says_anything_decides() {
    const STATES: [&str; 6] = ["absent", "unset", "disabled", "malformed", "configured", "broken"];
    let layers = [Layer::Project, Layer::Global, Layer::Store];
    for place in 0..STATES.len().pow(3) {
        let states = [0, 1, 2].map(|digit| STATES[place / STATES.len().pow(digit) % STATES.len()]);
        let settings: Vec<LayerSettings> = layers.iter().zip(states).map(|(of, state)| layer(*of, state)).collect();
        let first = states.iter().position(|state| !matches!(*state, "absent" | "unset"));
        let expected = first
            .filter(|at| states[*at] == "configured")
            .map(|at| layers[at].word());
        let resolved = resolve(&settings, &Asked::Settings).expect("nothing is named");
        let decided = resolved.decided.iter().find(|decided| decided.name == "x");
        let chosen = decided.and_then(|decided| decided.chosen.as_ref());
        assert_eq!(
            chosen.map(|chosen| exec(&chosen.configured)[0].as_str()),
            expected,
            "{states:?}"
        );
        assert_eq!(chosen.map(|chosen| chosen.layer.word()), expected, "{states:?}");
        let told = resolved
            .diagnostics
            .iter()
            .any(|told| told.handler.as_deref() == Some("x"));
        assert_eq!(told, first.is_some_and(|at| states[at] == "malformed"), "{states:?}");
        let is_broken = states.contains(&"broken");
        assert_eq!(
            resolved
                .diagnostics
                .iter()
                .any(|told| told.code == "settings_load_failed"),
            is_broken
        );
    }
}

#[test]
fn what_the_run_says_comes_first() {
    let layers = [
        layer(Layer::Project, "disabled"),
        layer(Layer::Global, "configured"),
        layer(Layer::Store, "configured"),
    ];
    let program = |word: &str| Spec::Program(vec![word.to_owned()]);
    let named = |name: &str| Spec::Named(name.to_owned());
    let chosen = |asked: &Asked| -> Vec<(String, Layer)> {
        let resolved = resolve(&layers, asked).expect("what is named is there");
        let on = resolved.decided.into_iter();
        on.filter_map(|decided| Some((decided.name, decided.chosen?.layer)))
            .collect()
    };
    assert_eq!(chosen(&Asked::Settings), []);
    assert_eq!(chosen(&Asked::Off), []);
    assert_eq!(
        chosen(&Asked::Told(vec![named("x")])),
        [("x".to_owned(), Layer::Global)]
    );
    let two = Asked::Told(vec![program("a"), program("b")]);
    assert_eq!(
        chosen(&two),
        [("run-1".to_owned(), Layer::Run), ("run-2".to_owned(), Layer::Run)]
    );
    let refused = resolve(&layers, &Asked::Told(vec![named("y")])).expect_err("nothing has it");
    assert_eq!(refused.name, "y");
    let malformed = [layer(Layer::Project, "malformed")];
    let refused = resolve(&malformed, &Asked::Told(vec![named("x")])).expect_err("it is malformed");
    assert!(refused.why.contains("argv"), "{refused:?}");
}

#[test]
fn a_program_of_the_run_takes_no_name_that_settings_have() {
    let mut settings = layer(Layer::Global, "configured");
    let taken = settings.entries["x"].clone();
    settings.entries.insert("run-1".to_owned(), taken);
    let resolved = resolve(&[settings], &Asked::Told(vec![Spec::Program(vec!["a".to_owned()])]));
    let names: Vec<String> = resolved
        .expect("nothing is named")
        .decided
        .into_iter()
        .map(|decided| decided.name)
        .collect();
    assert_eq!(names, ["run-1", "run-2", "x"]);
}

#[test]
fn the_nearest_layer_names_the_tags_that_are_let_out() {
    let project_tags = project("[notify]\nmetadata_tags = [\"team\"]");
    let silent = project("");
    let mut global = LayerSettings::empty(Layer::Global);
    global.metadata_tags = Some(vec!["branch".to_owned()]);
    let tags =
        |layers: &[LayerSettings], asked: &Asked| resolve(layers, asked).expect("nothing is named").metadata_tags;
    let team = Some((Layer::Project, vec!["team".to_owned()]));
    assert_eq!(tags(&[project_tags.clone(), global.clone()], &Asked::Settings), team);
    assert_eq!(tags(&[project_tags, global.clone()], &Asked::Off), team);
    assert_eq!(
        tags(&[silent, global], &Asked::Settings),
        Some((Layer::Global, vec!["branch".to_owned()]))
    );
}

/// What the component of this name that ships says of itself.
fn shipped(name: &str) -> HandlerDescriptor {
    let mut handlers = runwarden_bundled::HANDLERS.iter();
    let bundled = handlers.find(|bundled| bundled.name == name).expect("it ships");
    serde_json::from_str(bundled.descriptor).expect("its descriptor is one")
}

#[test]
fn a_handler_is_bound_only_to_a_component_that_it_fits() {
    let descriptor = shipped("exec");
    let kinds = ["run".to_owned(), "play".to_owned()];
    let bound = |lines: &str, is_installed: bool| {
        let chosen = Chosen {
            layer: Layer::Global,
            configured: configured(lines),
        };
        let component = Component {
            digest: "d",
            descriptor: &descriptor,
        };
        let codes = |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.code).collect::<Vec<_>>();
        bind("x", &chosen, is_installed.then_some(component), &kinds).map_err(codes)
    };
    let plural = bound("argv = [\"a\"]\nfilter = { kinds = [\"runs\"] }", true).expect("it fits");
    assert_eq!(
        (plural.filter.kinds, plural.digest.as_str()),
        (vec!["run".to_owned()], "d")
    );
    let refused = |lines: &str| bound(lines, true).expect_err("it does not fit");
    assert_eq!(
        bound("argv = [\"a\"]", false),
        Err(vec!["component_unknown".to_owned()])
    );
    assert_eq!(
        refused("argv = [\"a\"]\nfilter = { kinds = [\"team\"] }"),
        ["filter_kinds_unsupported"]
    );
    assert_eq!(
        refused("argv = [\"a\"]\nconfig = { deadline = 5, wants_acknowledgement = \"x\" }"),
        ["config_not_fitting", "config_not_fitting"]
    );
    let file = "component = \"exec\"\n[notify.handlers.x.destinations.d]\ntransport = \"file\"\npath = \"/x\"";
    assert_eq!(refused(file), ["transport_not_declared"]);
}
