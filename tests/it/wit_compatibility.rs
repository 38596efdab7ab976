//! The contract may only change as its version allows: compared with every release of its line.
//!
//! Two judges: `wit-component` builds a component of the release and asks whether it still fits, and a comparison of our
//! own also sees what that one admits, such as a function that is gone, and says which name it is about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wit_component::semver_check;
use wit_parser::{PackageId, Resolve, Type, TypeDef, TypeDefKind, TypeOwner, WorldItem};

/// Packages, each after those it uses, with the file that names the package first.
const PACKAGES: [(&str, &[&str]); 4] = [
    ("types", &["types.wit"]),
    ("host", &["host.wit"]),
    ("policy", &["lifecycle.wit", "guard.wit", "execution.wit", "worlds.wit"]),
    ("notify", &["notify.wit"]),
];

/// A version that no release has, for a copy that stands beside the contract.
const BESIDE: &str = "0.1.99999";

/// The text of each package.
type Texts = Vec<String>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn texts(directory: &Path) -> Texts {
    let text = |(package, files): &(&str, &[&str])| {
        let found = std::fs::read_dir(directory.join(package)).expect("a package").count();
        assert_eq!(found, files.len(), "every file of {package} is named here");
        let read = |file: &&str| std::fs::read_to_string(directory.join(package).join(file)).expect("a file of it");
        files.iter().map(read).collect::<Vec<_>>().join("\n")
    };
    PACKAGES.iter().map(text).collect()
}

fn push(resolve: &mut Resolve, texts: &Texts) -> Vec<PackageId> {
    let push = |text: &String| resolve.push_str("contract.wit", text).expect("tools understand it");
    texts.iter().map(push).collect()
}

/// What a component can notice of the contract.
#[derive(Default)]
struct Shape {
    interfaces: BTreeMap<String, Interface>,
    /// Imports and exports.
    worlds: BTreeMap<String, String>,
}

#[derive(Default)]
struct Interface {
    types: BTreeMap<String, String>,
    functions: BTreeMap<String, String>,
}

fn shape(texts: &Texts) -> Shape {
    let mut resolve = Resolve::default();
    push(&mut resolve, texts);
    let mut shape = Shape::default();
    for (_, interface) in &resolve.interfaces {
        let types = interface.types.iter();
        let functions = interface.functions.iter();
        let found = Interface {
            types: types
                .map(|(name, id)| (name.clone(), definition(&resolve, &resolve.types[*id])))
                .collect(),
            functions: functions
                .map(|(name, function)| {
                    let parameters = function.params.iter();
                    let parameters: Vec<String> = parameters
                        .map(|parameter| format!("{}: {}", parameter.name, named(&resolve, parameter.ty)))
                        .collect();
                    let result = function
                        .result
                        .map_or_else(String::new, |result| named(&resolve, result));
                    (name.clone(), format!("({}) -> {result}", parameters.join(", ")))
                })
                .collect(),
        };
        shape.interfaces.insert(interface.name.clone().expect("a name"), found);
    }
    for (_, world) in &resolve.worlds {
        let name = |item: &WorldItem| match item {
            WorldItem::Interface { id, .. } => resolve.interfaces[*id].name.clone().expect("a name"),
            other => panic!("worlds name interfaces alone: {other:?}"),
        };
        let imports: Vec<String> = world.imports.values().map(name).collect();
        let exports: Vec<String> = world.exports.values().map(name).collect();
        let words = format!("imports {}, exports {}", imports.join(" "), exports.join(" "));
        shape.worlds.insert(world.name.clone(), words);
    }
    shape
}

/// A type where it is used: its name, or what it is made of when it has none.
fn named(resolve: &Resolve, used: Type) -> String {
    let Type::Id(id) = used else {
        return format!("{used:?}").to_lowercase();
    };
    let definition_of = &resolve.types[id];
    match (&definition_of.name, definition_of.owner) {
        (Some(name), TypeOwner::Interface(interface)) => {
            let interface = resolve.interfaces[interface].name.clone().expect("a name");
            format!("{interface}.{name}")
        }
        _ => definition(resolve, definition_of),
    }
}

/// What a type is made of.
fn definition(resolve: &Resolve, found: &TypeDef) -> String {
    let optional = |used: Option<Type>| used.map_or_else(|| "_".to_owned(), |used| named(resolve, used));
    let list = |parts: Vec<String>| parts.join(", ");
    match &found.kind {
        TypeDefKind::Record(record) => {
            let fields = record.fields.iter();
            let fields = fields.map(|field| format!("{}: {}", field.name, named(resolve, field.ty)));
            format!("record {{{}}}", list(fields.collect()))
        }
        TypeDefKind::Variant(variant) => {
            let cases = variant.cases.iter();
            let cases = cases.map(|case| format!("{}({})", case.name, optional(case.ty)));
            format!("variant {{{}}}", list(cases.collect()))
        }
        TypeDefKind::Enum(cases) => {
            format!(
                "enum {{{}}}",
                list(cases.cases.iter().map(|case| case.name.clone()).collect())
            )
        }
        TypeDefKind::Tuple(tuple) => {
            let parts = tuple.types.iter().map(|part| named(resolve, *part));
            format!("tuple<{}>", list(parts.collect()))
        }
        TypeDefKind::Option(inner) => format!("option<{}>", named(resolve, *inner)),
        TypeDefKind::List(inner) => format!("list<{}>", named(resolve, *inner)),
        TypeDefKind::Result(result) => format!("result<{}, {}>", optional(result.ok), optional(result.err)),
        TypeDefKind::Type(other) => named(resolve, *other),
        other => panic!("the contract is made of records, lists, options and results: {other:?}"),
    }
}

/// What the later contract breaks for components of the earlier one, by name.
fn breaks(earlier: &Shape, later: &Shape) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, interface) in &earlier.interfaces {
        let Some(now) = later.interfaces.get(name) else {
            problems.push(format!("interface {name} is gone"));
            continue;
        };
        problems.extend(changes(&format!("{name}."), &interface.types, &now.types));
        problems.extend(changes(&format!("{name}."), &interface.functions, &now.functions));
        // Whoever exports the interface exports all of it: a function more is one that built components have not.
        let added = now
            .functions
            .keys()
            .filter(|function| !interface.functions.contains_key(*function));
        problems
            .extend(added.map(|function| format!("{name}.{function} was added to an interface that has a release")));
    }
    problems.extend(changes("world ", &earlier.worlds, &later.worlds));
    problems
}

fn changes(place: &str, earlier: &BTreeMap<String, String>, later: &BTreeMap<String, String>) -> Vec<String> {
    let change = |(name, was): (&String, &String)| match later.get(name) {
        None => Some(format!("{place}{name} is gone")),
        Some(is) if is != was => Some(format!("{place}{name}: {was} became {is}")),
        Some(_) => None,
    };
    earlier.iter().filter_map(change).collect()
}

/// Whether a component of each world of a release still fits, as `wit-component` sees it.
fn still_fits(release: &Texts, now: &Texts) -> Result<(), String> {
    let beside: Texts = release
        .iter()
        .map(|text| text.replace("@0.1.0", &format!("@{BESIDE}")))
        .collect();
    let mut resolve = Resolve::default();
    let (before, after) = (push(&mut resolve, &beside), push(&mut resolve, now));
    for (before, after) in before.into_iter().zip(after) {
        for (name, world) in resolve.packages[before].worlds.clone() {
            let Some(now) = resolve.packages[after].worlds.get(&name) else {
                return Err(format!("world {name} is gone"));
            };
            semver_check(resolve.clone(), world, *now).map_err(|error| format!("world {name}: {error:#}"))?;
        }
    }
    Ok(())
}

fn current() -> Texts {
    texts(&root().join("wit"))
}

/// The version of a contract: its packages have one together.
fn version(texts: &Texts) -> String {
    let mut versions: Vec<&str> = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter_map(|line| line.strip_prefix("package ")?.strip_suffix(';')?.split_once('@'))
        .map(|(_, version)| version)
        .collect();
    assert_eq!(versions.len(), PACKAGES.len(), "each package has a version");
    versions.dedup();
    assert_eq!(versions.len(), 1, "one version for all: {versions:?}");
    versions[0].to_owned()
}

fn line_of(version: &str) -> &str {
    version.rsplit_once('.').expect("three numbers").0
}

#[test]
fn the_contract_breaks_nothing_that_a_release_of_its_line_promised() {
    let now = current();
    let line = line_of(&version(&now)).to_owned();
    let releases = std::fs::read_dir(root().join("tests/fixtures/wit")).expect("releases are kept");
    let mut compared = 0;
    for release in releases.map(|release| release.expect("a release").path()) {
        let released = texts(&release);
        let released_version = version(&released);
        assert!(
            release.ends_with(&released_version),
            "{} holds {released_version}",
            release.display()
        );
        if line_of(&released_version) == line {
            assert_eq!(
                breaks(&shape(&released), &shape(&now)),
                [""; 0],
                "since {released_version}"
            );
            assert_eq!(still_fits(&released, &now), Ok(()), "since {released_version}");
            compared += 1;
        }
    }
    assert!(compared > 0, "no release of {line} is kept in tests/fixtures/wit");
}

/// What both judges say of the contract with one text in place of another.
fn judged(from: &str, to: &str) -> (Vec<String>, Result<(), String>) {
    let before = current();
    let after: Texts = before.iter().map(|text| text.replacen(from, to, 1)).collect();
    assert_ne!(before, after, "`{from}` stands in the contract");
    (breaks(&shape(&before), &shape(&after)), still_fits(&before, &after))
}

#[test]
fn a_change_that_built_components_would_notice_is_named() {
    let check = |from: &str, to: &str, expected: &str| {
        let (problems, _) = judged(from, to);
        assert!(
            problems.iter().any(|problem| problem.contains(expected)),
            "{expected}: {problems:?}"
        );
    };
    check(
        "admitted: bool,",
        "admitted: bool, grade: s64,",
        "guard.decision: record {admitted: bool, code",
    );
    check("admitted: bool,", "", "guard.decision: record {admitted: bool");
    check(
        "admitted: bool,",
        "admitted: option<bool>,",
        "became record {admitted: option<bool>",
    );
    check("evaluate: func", "judge: func", "guard.evaluate is gone");
    check(
        "plan: func",
        "plan-all: func(); plan: func",
        "notifier.plan-all was added",
    );
    check(
        "assess: func(observation: observation)",
        "assess: func()",
        "health.assess: (observation: health.observation)",
    );
    check(
        "level: string, message",
        "level: string, place: string, message",
        "diagnostics.log: (level: string, message",
    );
    check(
        "world guard-policy {",
        "world guard-policy { export lifecycle;",
        "world guard-policy: imports",
    );
    check(
        "world guard-policy {",
        "world gate-policy {",
        "world guard-policy is gone",
    );
}

#[test]
fn tools_agree_on_what_they_can_see() {
    let fits = |from: &str, to: &str| judged(from, to).1.is_ok();
    assert!(!fits("admitted: bool,", "admitted: bool, grade: s64,"));
    assert!(!fits("admitted: bool,", "admitted: string,"));
    assert!(!fits("plan: func", "plan-all: func(); plan: func"));
    assert!(fits(
        "/// What a policy adds for edges",
        "/// What a policy may add for edges"
    ));
}

#[test]
fn an_interface_or_a_world_more_breaks_nothing() {
    let interface =
        "interface oracle { foresee: func() -> string; } world oracle-policy { export oracle; } interface guard {";
    assert_eq!(judged("interface guard {", interface), (Vec::new(), Ok(())));
    let word = "/// Another word for it.\n/// What a policy adds for edges";
    assert_eq!(judged("/// What a policy adds for edges", word), (Vec::new(), Ok(())));
}
