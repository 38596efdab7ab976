use crate::Status;

/// A status that is neither initial nor terminal.
pub fn status(name: &str, summary: &str) -> Status {
    Status {
        name: name.to_owned(),
        summary: summary.to_owned(),
        initial: false,
        creation_code: None,
        terminal: false,
        success: false,
        announced: false,
        ext: Vec::new(),
    }
}

impl Status {
    /// Entities may be created in it, with this code when none is given.
    #[must_use]
    pub fn initial(mut self, creation_code: &str) -> Self {
        self.initial = true;
        self.creation_code = Some(creation_code.to_owned());
        self
    }

    /// Entities may be created in it, and the code must be given.
    #[must_use]
    pub fn initial_with_given_code(mut self) -> Self {
        self.initial = true;
        self
    }

    /// Nothing ordinary leads out of it.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Terminal, and `wait` counts it as a success.
    #[must_use]
    pub fn success(mut self) -> Self {
        self.terminal = true;
        self.success = true;
        self
    }

    /// Entering it makes an event although it is not terminal.
    #[must_use]
    pub fn announced(mut self) -> Self {
        self.announced = true;
        self
    }
}
