//! The known word that an unknown one was probably meant to be.

/// How alike two words must be, from 0 to 1: one slip in a short word, a few in a long one.
const ALIKE: f64 = 0.7;

/// The known word that is most like `word`; none when none is like it.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known
        .into_iter()
        .map(|other| (strsim::jaro_winkler(word, other), other));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 >= ALIKE).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_finds_the_word_that_was_meant() {
        let known = ["timeout", "transport", "argv", "filter"];
        for (word, meant) in [
            ("timout", Some("timeout")),
            ("fitler", Some("filter")),
            ("args", Some("argv")),
            ("colour", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        assert_eq!(nearest("x", []), None);
    }
}
