//! The `.d` files that cargo leaves beside its artefacts.

use std::path::PathBuf;

/// The files that an artefact was made of. Spaces in names are written with a backslash.
pub(crate) fn sources(dep_info: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in dep_info.lines() {
        let Some((_, files)) = line.split_once(": ") else {
            continue;
        };
        let mut file = String::new();
        let mut characters = files.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '\\' if characters.peek() == Some(&' ') => file.extend(characters.next()),
                ' ' => push(&mut found, &mut file),
                _ => file.push(character),
            }
        }
        push(&mut found, &mut file);
    }
    found
}

fn push(found: &mut Vec<PathBuf>, file: &mut String) {
    if !file.is_empty() {
        found.push(PathBuf::from(std::mem::take(file)));
    }
}

#[cfg(test)]
mod tests {
    use super::sources;
    use std::path::Path;

    #[test]
    fn names_are_split_at_spaces_that_are_not_escaped() {
        assert_eq!(
            sources("/t/guest.wasm: /a/b.rs /a/with\\ space.rs\n"),
            [Path::new("/a/b.rs"), Path::new("/a/with space.rs")]
        );
    }

    #[test]
    fn an_artefact_without_sources_has_none() {
        assert!(sources("/t/guest.wasm:\n").is_empty());
    }
}
