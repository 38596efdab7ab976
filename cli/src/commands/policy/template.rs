//! What new projects are made of: templates that this program carries, compressed.

use std::path::PathBuf;

/// Every file, packed by the build script: the length of its name, the name, its length, its content.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/templates.bin"));

/// A directory of the archive, and where its files go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    /// The directory.
    pub(super) from: &'static str,
    /// Below the directory of the project.
    pub(super) to: &'static str,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    /// Below the directory of the project.
    pub(super) path: PathBuf,
    /// What is in it.
    pub(super) text: String,
}

/// The files of these directories, as they are packed.
pub(super) fn files(sources: &[Source]) -> Vec<File> {
    let archive = miniz_oxide::inflate::decompress_to_vec(ARCHIVE).expect("the build script packed it");
    let mut rest = archive.as_slice();
    let mut files = Vec::new();
    while !rest.is_empty() {
        let name = text(&mut rest);
        let text = text(&mut rest);
        for source in sources {
            let inside = name.strip_prefix(source.from).and_then(|name| name.strip_prefix('/'));
            if let Some(inside) = inside {
                let path = PathBuf::from(source.to).join(inside);
                files.push(File {
                    path,
                    text: text.to_owned(),
                });
            }
        }
    }
    files
}

/// The next text of the archive.
fn text<'a>(rest: &mut &'a [u8]) -> &'a str {
    let (length, after) = rest.split_first_chunk().expect("a length stands before each text");
    let length = usize::try_from(u32::from_le_bytes(*length)).expect("a text fits memory");
    let (text, after) = after.split_at(length);
    *rest = after;
    std::str::from_utf8(text).expect("templates are text")
}

/// The words that stand for a project's own in templates.
pub(super) struct Words {
    name: String,
    kind: String,
    type_name: String,
}

impl Words {
    /// Of a project with this name: lower case, digits, `_` and `-`.
    pub(super) fn of(name: &str) -> Self {
        let parts = name.split(['-', '_']).filter(|part| !part.is_empty());
        Self {
            name: name.to_owned(),
            kind: name.replace('-', "_"),
            type_name: parts.map(|part| part[..1].to_ascii_uppercase() + &part[1..]).collect(),
        }
    }

    /// A template's text with the project's own words.
    pub(super) fn put_into(&self, text: &str) -> String {
        text.replace("{{name}}", &self.name)
            .replace("{{kind}}", &self.kind)
            .replace("{{type}}", &self.type_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_a_kind_and_a_type() {
        let words = Words::of("build-of_2");
        let text = words.put_into("{{name}} {{kind}} {{type}}");
        assert_eq!(text, "build-of_2 build_of_2 BuildOf2");
    }

    #[test]
    fn the_contract_is_packed_whole() {
        let paths: Vec<PathBuf> = files(&[Source { from: "wit", to: "wit" }])
            .into_iter()
            .map(|file| file.path)
            .collect();
        for path in [
            "wit/lifecycle.wit",
            "wit/worlds.wit",
            "wit/deps/types/types.wit",
            "wit/deps/notify/notify.wit",
        ] {
            assert!(paths.contains(&PathBuf::from(path)), "{path}");
        }
    }
}
