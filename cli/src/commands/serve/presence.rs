//! Where the service that is up is found: `serve.json` in the home, as long as it is up.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::errors::{Failure, Outcome};
use crate::output::{Page, Report, Text, pretty};

/// What a service says of itself when it is up. The file is removed when this is dropped; what a killed one leaves is
/// replaced by the next.
pub(super) struct Presence {
    document: Value,
    path: PathBuf,
}

impl Presence {
    /// Says in the home where the service is: whole, or not at all.
    pub(super) fn announce(home: &Path, address: SocketAddr, started_at: &str) -> Outcome<Self> {
        let path = home.join("serve.json");
        let document = json!({
            "address": address.to_string(),
            "url": format!("http://{address}"),
            "pid": std::process::id(),
            "version": env!("CARGO_PKG_VERSION"),
            "started_at": started_at,
        });
        let part = home.join("serve.json.part");
        let mut options = fs::OpenOptions::new();
        let options = options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(&part).and_then(|mut file| {
            file.write_all(pretty(&document).as_bytes())?;
            file.write_all(b"\n")?;
            fs::rename(&part, &path)
        });
        written.map_err(|error| Failure::file("write", &path, &error))?;
        Ok(Self { document, path })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path); // who finds one that stays sees that its process is gone
    }
}

impl Report for Presence {
    fn json(&self) -> Value {
        self.document.clone()
    }

    fn text(&self, _page: &Page) -> Text {
        Text::of("Serving on ").and(self.document["url"].as_str().unwrap_or_default())
    }
}
