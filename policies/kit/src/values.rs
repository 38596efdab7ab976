//! Short ways to make the answers of guards, verdicts, health and handlers.

use crate::{
    Assessment, Binding, Decision, Entity, Fault, Judgement, Mapping, NamedJson, Outcome, Parameter, PlannedDispatch,
    Surroundings,
};

impl NamedJson {
    /// A name with its value as JSON text.
    pub fn new(name: &str, json: &str) -> Self {
        Self {
            name: name.to_owned(),
            json: json.to_owned(),
        }
    }
}

impl Entity {
    /// The JSON text of a field, if the entity has it.
    pub fn field(&self, name: &str) -> Option<&str> {
        find(&self.fields, name)
    }

    /// The value of a tag, if the entity has it.
    pub fn tag(&self, key: &str) -> Option<&str> {
        let tag = self.tags.iter().find(|tag| tag.key == key)?;
        Some(&tag.value)
    }
}

impl Surroundings {
    /// The JSON text of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        find(&self.parameters, name)
    }
}

impl Binding {
    /// The JSON text of a parameter; the host fills in defaults, so every declared one has a value.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        find(&self.config, name)
    }
}

impl Parameter {
    /// A parameter that must be set.
    pub fn required(name: &str, kind: &str, summary: &str) -> Self {
        Self::new(name, kind, "null", summary)
    }

    /// A parameter whose default is given as JSON text.
    pub fn new(name: &str, kind: &str, default: &str, summary: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: kind.to_owned(),
            default: default.to_owned(),
            choices: Vec::new(),
            summary: summary.to_owned(),
            ext: Vec::new(),
        }
    }

    /// Admits these values alone, each as JSON text.
    #[must_use]
    pub fn choices(mut self, choices: &[&str]) -> Self {
        self.choices = crate::table::texts(choices);
        self
    }
}

impl Fault {
    /// A failure of the component itself. The code is lower-case words joined by underscores.
    pub fn new(code: &str, message: &str) -> Self {
        Self {
            code: code.to_owned(),
            message: message.to_owned(),
            hint: None,
            ext: Vec::new(),
        }
    }

    /// Says what to type or change next.
    #[must_use]
    pub fn hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }
}

impl Decision {
    /// The guard lets the write happen.
    pub fn admit() -> Self {
        Self {
            admitted: true,
            code: String::new(),
            message: String::new(),
            ext: Vec::new(),
        }
    }

    /// The guard refuses; the code is for programs, the message for people.
    pub fn refuse(code: &str, message: &str) -> Self {
        Self {
            admitted: false,
            code: code.to_owned(),
            message: message.to_owned(),
            ext: Vec::new(),
        }
    }
}

impl Judgement {
    /// The ending means this status, written with this code.
    pub fn new(status: &str, code: &str) -> Self {
        Self {
            status: status.to_owned(),
            code: code.to_owned(),
            summary: None,
            patch: Vec::new(),
            retry_after: None,
            ext: Vec::new(),
        }
    }

    /// Says why, for people.
    #[must_use]
    pub fn summary(mut self, summary: &str) -> Self {
        self.summary = Some(summary.to_owned());
        self
    }

    /// Patches a field, given as JSON text.
    #[must_use]
    pub fn patch(mut self, name: &str, json: &str) -> Self {
        self.patch.push(NamedJson::new(name, json));
        self
    }

    /// Asks for another attempt after so many milliseconds.
    #[must_use]
    pub fn retry_after(mut self, delay_ms: i64) -> Self {
        self.retry_after = Some(delay_ms);
        self
    }
}

impl From<Outcome> for Judgement {
    fn from(outcome: Outcome) -> Self {
        Self::new(&outcome.status, &outcome.code)
    }
}

impl Assessment {
    /// A level (healthy, idle, unresponsive, stale, orphaned, zombie) with its reason for people.
    pub fn new(level: &str, message: &str) -> Self {
        Self {
            level: level.to_owned(),
            message: message.to_owned(),
            ext: Vec::new(),
        }
    }
}

impl Mapping {
    /// The entity goes on in this status.
    pub fn to(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            patch: Vec::new(),
            ext: Vec::new(),
        }
    }

    /// Patches a field, given as JSON text.
    #[must_use]
    pub fn patch(mut self, name: &str, json: &str) -> Self {
        self.patch.push(NamedJson::new(name, json));
        self
    }
}

impl PlannedDispatch {
    /// Sends a body to one of the binding's destinations.
    pub fn new(destination: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            destination: destination.to_owned(),
            body: body.into(),
            dedup_key: None,
            deadline: None,
            wants_acknowledgement: false,
            ext: Vec::new(),
        }
    }

    /// Names it among the dispatches of its plan; otherwise its place does.
    #[must_use]
    pub fn dedup_key(mut self, key: &str) -> Self {
        self.dedup_key = Some(key.to_owned());
        self
    }

    /// Is not sent after this moment, in milliseconds since the epoch.
    #[must_use]
    pub fn deadline(mut self, at_ms: i64) -> Self {
        self.deadline = Some(at_ms);
        self
    }

    /// Counts as delivered only when the receiver acknowledges it.
    #[must_use]
    pub fn wants_acknowledgement(mut self) -> Self {
        self.wants_acknowledgement = true;
        self
    }
}

fn find<'a>(values: &'a [NamedJson], name: &str) -> Option<&'a str> {
    let value = values.iter().find(|value| value.name == name)?;
    Some(&value.json)
}
