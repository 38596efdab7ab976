//! Handlers: what one says of itself, and what a plan of it comes to.
//!
//! The fields of [`HandlerDescriptor`] mirror the WIT record (`wit/notify/notify.wit`). Like a policy's, its JSON in
//! declaration order is what is hashed, stored and shipped.

use serde::{Deserialize, Serialize};

use super::notify::Transport;
use super::{Descriptor, DurationMs, Extension, Fields, Finding, Parameter, Timestamp, check_given, filled};

/// What the component of a handler is listed as where a policy has its kind. No entity is of it.
pub const HANDLER_KIND: &str = "handler";

/// The ways in which a destination is reached.
pub const TRANSPORTS: [&str; 3] = ["exec", "webhook", "file"];

/// How many dispatches one plan may have: a binding has some destinations, and hardly more than one body for each.
pub const PLANNED_MAX: usize = 64;

/// How long after its event a dispatch may at most be sent.
pub const DEADLINE_MAX: DurationMs = DurationMs::from_ms(366 * 24 * 60 * 60 * 1_000);

/// How long the part of a deduplication key that a handler chooses may be.
const KEY_BYTES_MAX: usize = 128;

/// Everything about a handler that is data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandlerDescriptor {
    /// Its name.
    pub name: String,
    /// Semantic version.
    pub version: String,
    /// What it is.
    pub summary: String,
    /// What a binding may configure.
    pub config: Vec<Parameter>,
    /// Transports that its destinations may use.
    pub transports: Vec<String>,
    /// Later additions.
    pub ext: Vec<Extension>,
}

impl HandlerDescriptor {
    /// The canonical JSON text: what is hashed, stored and compared.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).expect("a descriptor holds only JSON values and string keys")
    }

    /// `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Whether its destinations may be reached in this way.
    pub fn reaches(&self, transport: &Transport) -> bool {
        self.transports.iter().any(|word| word == transport.word())
    }
}

/// What a component says of itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Described {
    /// It is a policy.
    Policy(Box<Descriptor>),
    /// It is a handler.
    Handler(HandlerDescriptor),
}

impl Described {
    /// The kind that it governs, or [`HANDLER_KIND`].
    pub fn kind(&self) -> &str {
        match self {
            Self::Policy(descriptor) => &descriptor.kind,
            Self::Handler(_) => HANDLER_KIND,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Policy(descriptor) => &descriptor.name,
            Self::Handler(descriptor) => &descriptor.name,
        }
    }

    /// Its version.
    pub fn version(&self) -> &str {
        match self {
            Self::Policy(descriptor) => &descriptor.version,
            Self::Handler(descriptor) => &descriptor.version,
        }
    }

    /// `name@version`.
    pub fn label(&self) -> String {
        format!("{}@{}", self.name(), self.version())
    }

    /// The canonical JSON text: what is hashed, stored and compared.
    pub fn canonical(&self) -> String {
        match self {
            Self::Policy(descriptor) => descriptor.canonical(),
            Self::Handler(descriptor) => descriptor.canonical(),
        }
    }
}

/// What is wrong with a binding's configuration: each finding's place is the parameter, its message says what was given,
/// what is admitted, and for an unknown parameter the nearest known one.
pub fn check_config(descriptor: &HandlerDescriptor, config: &Fields) -> Vec<Finding> {
    check_given(&descriptor.config, config)
}

/// A value for each parameter: what was configured, in the form of the parameter's kind, else its default. What is not a
/// parameter is left out.
pub fn filled_config(descriptor: &HandlerDescriptor, config: &Fields) -> Fields {
    filled(&descriptor.config, config)
}

/// A dispatch that a handler planned, admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedDispatch {
    /// One of the binding's destinations.
    pub destination: String,
    /// What every attempt sends.
    pub body: Vec<u8>,
    /// `<event>/<binding>/<n or the handler's key>`.
    pub dedup_key: String,
    /// After this it is no longer sent.
    pub deadline: Option<Timestamp>,
    /// The receiver presents the token, or it is sent again.
    pub wants_acknowledgement: bool,
}

/// The deduplication key of a planned dispatch: the event, the binding, and the handler's own key or else its place in
/// the plan, so that a plan that is made twice gives the same keys.
pub fn dedup_key(event: &str, binding: &str, place: usize, key: Option<&str>) -> String {
    match key {
        Some(key) => format!("{event}/{binding}/{key}"),
        None => format!("{event}/{binding}/{place}"),
    }
}

/// Whether a handler may name a dispatch so: letters, digits, `.`, `-` and `_`, at most 128 of them. A slash would make
/// the key of one binding look like another's.
pub fn is_dispatch_key(key: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !key.is_empty() && key.len() <= KEY_BYTES_MAX && key.bytes().all(fits)
}

/// What is wrong with a deadline, if anything: a dispatch may not be late before its event, nor wait for ever.
pub fn deadline_problem(occurred_at: Timestamp, deadline: Timestamp) -> Option<&'static str> {
    let after = deadline.as_ms().saturating_sub(occurred_at.as_ms());
    if after < 0 {
        Some("it is before the event")
    } else if after > DEADLINE_MAX.as_ms() {
        Some("it is more than 366 days after the event")
    } else {
        None
    }
}

/// What is wrong with a body for this transport, if anything: found when it is planned, because no attempt would mend it.
pub fn body_problem(transport: &Transport, body: &[u8]) -> Option<&'static str> {
    if body.is_empty() {
        return Some("it is empty");
    }
    match transport {
        Transport::Exec { argv, .. } => {
            let as_argument = argv.iter().any(|argument| argument == PAYLOAD);
            (as_argument && body.contains(&0)).then_some("it has a NUL and is to be an argument")
        }
        Transport::Webhook { .. } => None,
        Transport::File { .. } => {
            let is_line = !body.contains(&b'\n') && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
            (!is_line).then_some("it is to be a line of a file, and is not one line of JSON")
        }
    }
}

/// The argument of a program that stands for the body.
const PAYLOAD: &str = "{payload}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_a_dispatch_names_event_binding_and_place_or_the_handlers_word() {
        assert_eq!(dedup_key("e-1", "ops", 3, None), "e-1/ops/3");
        assert_eq!(dedup_key("e-1", "ops", 3, Some("page")), "e-1/ops/page");
    }

    #[test]
    fn a_key_of_a_handler_is_a_short_word_without_slashes() {
        let longest = "x".repeat(128);
        let long = "x".repeat(129);
        for (key, admitted) in [
            ("page.1_a-B", true),
            (&*longest, true),
            (&*long, false),
            ("", false),
            ("a/b", false),
            ("a b", false),
            ("ä", false),
            ("\u{1b}[2J", false),
        ] {
            assert_eq!(is_dispatch_key(key), admitted, "{key:?}");
        }
    }

    #[test]
    fn a_deadline_is_after_the_event_and_within_a_year() {
        let day = 24 * 60 * 60 * 1_000;
        let problem = |after: i64| deadline_problem(Timestamp::from_ms(1_000), Timestamp::from_ms(after));
        assert_eq!(problem(1_000), None);
        assert_eq!(problem(1_000 + 366 * day), None);
        assert_eq!(problem(999), Some("it is before the event"));
        assert!(problem(1_001 + 366 * day).is_some());
        assert!(problem(i64::MAX).is_some() && problem(i64::MIN).is_some());
    }

    #[test]
    fn a_body_suits_the_transport_of_its_destination() {
        let exec = |argument: &str| Transport::Exec {
            argv: vec!["prog".to_owned(), argument.to_owned()],
            env: Vec::new(),
        };
        let webhook = Transport::Webhook {
            url: super::super::Source::Given("https://example.org".to_owned()),
            secrets: Vec::new(),
            allow_private: false,
            ca_file: None,
        };
        let file = Transport::File {
            path: "/tmp/notices".to_owned(),
        };
        for (transport, body, admitted) in [
            (&exec("{payload}"), "text\nof lines", true),
            (&exec("{payload}"), "a\0b", false),
            (&exec("--stdin"), "a\0b", true),
            (&webhook, "\u{0}any bytes", true),
            (&webhook, "", false),
            (&file, r#"{"a": 1}"#, true),
            (&file, "{\n}", false),
            (&file, "no JSON", false),
        ] {
            assert_eq!(
                body_problem(transport, body.as_bytes()).is_none(),
                admitted,
                "{transport:?} {body:?}"
            );
        }
    }
}
