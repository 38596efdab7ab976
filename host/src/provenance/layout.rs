//! A component as an OCI image layout: a directory that registries' tools copy as it is.
//!
//! ```text
//! oci-layout                 which layout it is
//! index.json                 names the manifest
//! blobs/sha256/DIGEST        the manifest, the configuration, the component
//! ```
//!
//! The manifest is that of a Wasm artifact with one layer. The same component with the same signatures makes the same
//! bytes. Nothing here touches a file: paths go out, and are read by the caller.

use serde_json::{Map, Value, json};

use super::{Signature, Untrusted};
use crate::model::sha256_hex;

/// The type of the artifact and of its one layer.
const WASM: &str = "application/wasm";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// What annotations of our own begin with.
const OWN: &str = "io.github.runwarden.";

/// The annotation of a signature: this, and the id of its key.
const SIGNATURE: &str = "io.github.runwarden.signature.";

/// The file that says which layout it is.
const LAYOUT_FILE: &str = "oci-layout";

/// The file that names the manifests.
const INDEX_FILE: &str = "index.json";

/// The largest document that is read: a manifest has a few hundred bytes for each signature.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// How many signatures of one component are read.
const SIGNATURES_MAX: usize = 64;

/// A component on its way into a layout.
#[derive(Clone, Debug)]
pub struct Exported<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The kind it is for.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
    /// The interfaces it exports, with their versions.
    pub exports: &'a [String],
    /// Those it imports.
    pub imports: &'a [String],
    /// Signatures over its bytes.
    pub signatures: &'a [Signature],
}

/// A component that came out of a layout; nobody has judged it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its bytes, of the digest that the manifest names.
    pub bytes: Vec<u8>,
    /// The signatures beside it.
    pub signatures: Vec<Signature>,
}

/// The files of a layout, by their paths in it.
pub fn layout(component: &Exported<'_>) -> Vec<(String, Vec<u8>)> {
    let layer = descriptor(WASM, component.bytes);
    let config = json!({
        // The layout of a component does not depend on when it is made.
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer["digest"]],
        "component": {"exports": component.exports, "imports": component.imports},
    });
    let config = config.to_string().into_bytes();
    let annotations = annotations(component);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": WASM,
        "config": descriptor(CONFIG, &config),
        "layers": [layer],
        "annotations": annotations,
    });
    let manifest = manifest.to_string().into_bytes();
    let mut entry = descriptor(MANIFEST, &manifest);
    entry["artifactType"] = json!(WASM);
    entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": component.version,
        "org.opencontainers.image.title": component.name,
    });
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]});
    let blob = |bytes: &[u8]| format!("blobs/sha256/{}", sha256_hex(bytes));
    vec![
        (blob(component.bytes), component.bytes.to_vec()),
        (blob(&config), config),
        (blob(&manifest), manifest),
        (INDEX_FILE.to_owned(), index.to_string().into_bytes()),
        // Last: without it a directory is no layout.
        (
            LAYOUT_FILE.to_owned(),
            json!({"imageLayoutVersion": "1.0.0"}).to_string().into_bytes(),
        ),
    ]
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256_hex(bytes)), "size": bytes.len()})
}

fn annotations(component: &Exported<'_>) -> Value {
    let mut annotations = Map::new();
    let mut add = |key: String, value: &str| annotations.insert(key, json!(value));
    add("org.opencontainers.image.title".to_owned(), component.name);
    add("org.opencontainers.image.version".to_owned(), component.version);
    add(format!("{OWN}kind"), component.kind);
    for signature in component.signatures {
        add(format!("{SIGNATURE}{}", signature.key), &signature.to_line());
    }
    Value::Object(annotations)
}

/// The component of a layout, its size and digest as the manifest says. `read` gives the bytes of a file of the layout, if
/// there are at most so many. `component_bytes` is how large a component may be.
///
/// # Errors
/// A document is not what it should be, a blob is not what its name says, or there is not one component.
pub fn component_of(
    component_bytes: usize,
    read: impl Fn(&str, usize) -> Result<Vec<u8>, String>,
) -> Result<Imported, Untrusted> {
    let document = |bytes: &[u8]| {
        serde_json::from_slice::<Value>(bytes)
            .map_err(|error| malformed(format!("a document of it is no JSON: {error}")))
    };
    let blob = |descriptor: &Value, limit: usize| blob(descriptor, limit, &read);
    let version = document(&read(LAYOUT_FILE, DOCUMENT_BYTES_MAX).map_err(malformed)?)?;
    if version["imageLayoutVersion"] != "1.0.0" {
        return Err(malformed("its layout version is not 1.0.0"));
    }
    let index = document(&read(INDEX_FILE, DOCUMENT_BYTES_MAX).map_err(malformed)?)?;
    let entries = index["manifests"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut manifests = entries.iter().filter(|entry| entry["mediaType"] == MANIFEST);
    let (Some(entry), None) = (manifests.next(), manifests.next()) else {
        return Err(malformed("it holds one image manifest, and no more"));
    };
    let manifest = document(&blob(entry, DOCUMENT_BYTES_MAX)?)?;
    let layers = manifest["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let [layer] = layers else {
        return Err(malformed("a component is one layer, and no more"));
    };
    if layer["mediaType"] != WASM {
        return Err(malformed(format!("its layer is no {WASM}")));
    }
    Ok(Imported {
        bytes: blob(layer, component_bytes)?,
        signatures: signatures(&manifest["annotations"])?,
    })
}

fn signatures(annotations: &Value) -> Result<Vec<Signature>, Untrusted> {
    let all = annotations.as_object().into_iter().flatten();
    let lines = all.filter(|(key, _)| key.starts_with(SIGNATURE)).take(SIGNATURES_MAX);
    let signatures = lines.map(|(_, line)| Signature::from_line(line.as_str().unwrap_or_default()));
    signatures.collect()
}

/// The bytes that a descriptor names.
fn blob(
    descriptor: &Value,
    limit: usize,
    read: &impl Fn(&str, usize) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, Untrusted> {
    let digest = descriptor["digest"]
        .as_str()
        .and_then(|digest| digest.strip_prefix("sha256:"));
    let is_digest =
        |digest: &&str| digest.len() == 64 && digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    // Whatever a stranger writes there becomes part of a path.
    let Some(digest) = digest.filter(is_digest) else {
        return Err(malformed("a digest of it is no sha256"));
    };
    let bytes = read(&format!("blobs/sha256/{digest}"), limit).map_err(malformed)?;
    if descriptor["size"] != json!(bytes.len()) {
        return Err(malformed(format!(
            "the blob {digest} is not as large as it is said to be"
        )));
    }
    if sha256_hex(&bytes) != digest {
        return Err(malformed(format!(
            "the blob {digest} has another digest: it was changed"
        )));
    }
    Ok(bytes)
}

fn malformed(why: impl Into<String>) -> Untrusted {
    Untrusted::Malformed {
        what: "image layout",
        why: why.into(),
    }
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::unwrap_used,
        reason = "a test ends at the first thing that is not as it should be"
    )]

    use std::collections::BTreeMap;

    use super::super::SecretKey;
    use super::*;

    const BYTES: &[u8] = b"\0asm and more";

    fn files(signatures: &[Signature]) -> BTreeMap<String, Vec<u8>> {
        let exported = Exported {
            bytes: BYTES,
            kind: "play",
            name: "strict_play",
            version: "1.2.0",
            exports: &["runwarden:policy/lifecycle@0.1.0".to_owned()],
            imports: &[],
            signatures,
        };
        layout(&exported).into_iter().collect()
    }

    fn imported(files: &BTreeMap<String, Vec<u8>>) -> Result<Imported, Untrusted> {
        component_of(1_000, |path, limit| {
            let bytes = files.get(path).ok_or_else(|| format!("{path} is absent"))?;
            if bytes.len() > limit {
                return Err(format!("{path} is too large"));
            }
            Ok(bytes.clone())
        })
    }

    #[test]
    fn what_went_into_a_layout_comes_out_of_it() {
        let signatures = [
            SecretKey::from_seed([1; 32]).sign(BYTES),
            SecretKey::from_seed([2; 32]).sign(BYTES),
        ];
        let files = files(&signatures);
        assert_eq!(files.len(), 5);
        let mut out = imported(&files).unwrap();
        assert_eq!(out.bytes, BYTES);
        out.signatures
            .sort_by_key(|signature| signature.key != signatures[0].key);
        assert_eq!(out.signatures, signatures);
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>), words: &str) {
        let mut files = files(&[]);
        change(&mut files);
        let refused = imported(&files).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }

    #[test]
    fn a_layout_that_is_not_what_it_says_is_refused() {
        let component = format!("blobs/sha256/{}", sha256_hex(BYTES));
        let replaced = |text: &[u8], from: &str, to: &str| {
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(text.contains(from), "{text}");
            text.replace(from, to).into_bytes()
        };
        check(|files| drop(files.remove(LAYOUT_FILE)), "is absent");
        check(|files| drop(files.remove(INDEX_FILE)), "is absent");
        check(|files| drop(files.remove(&component)), "is absent");
        check(
            |files| *files.get_mut(&component).unwrap() = b"\0asm and LESS".to_vec(),
            "it was changed",
        );
        check(
            |files| *files.get_mut(&component).unwrap() = b"\0asm".to_vec(),
            "not as large",
        );
        check(|files| *files.get_mut(INDEX_FILE).unwrap() = b"{".to_vec(), "no JSON");
        check(
            |files| *files.get_mut(INDEX_FILE).unwrap() = br#"{"manifests":[]}"#.to_vec(),
            "one image manifest",
        );
        check(
            |files| {
                let index = files.get_mut(INDEX_FILE).unwrap();
                *index = replaced(index, "sha256:", "sha256:../");
            },
            "no sha256",
        );
        check(
            |files| {
                let layout = files.get_mut(LAYOUT_FILE).unwrap();
                *layout = replaced(layout, "1.0.0", "2.0.0");
            },
            "layout version",
        );
        check(
            |files| *files.get_mut(&component).unwrap() = vec![0; 2_000],
            "too large",
        );
    }
}
