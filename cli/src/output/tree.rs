//! The lines that lead to the members of a tree.

/// What each line of a tree begins with, from the depths of its members, parents before children. A member at depth 0
/// begins with nothing.
pub(crate) fn stems(depths: &[usize]) -> Vec<String> {
    // From the last to the first: whether a later member hangs on the same branch, for each depth.
    let mut follows: Vec<bool> = Vec::new();
    let mut stems: Vec<String> = depths
        .iter()
        .rev()
        .map(|depth| {
            follows.resize(depth + 1, false);
            let trunk = |place: usize| if follows[place] { "│  " } else { "   " };
            let mut stem: String = (1..*depth).map(trunk).collect();
            if *depth > 0 {
                stem.push_str(if follows[*depth] { "├─ " } else { "└─ " });
            }
            follows[*depth] = true;
            stem
        })
        .collect();
    stems.reverse();
    stems
}

#[cfg(test)]
mod tests {
    use super::stems;

    #[test]
    fn a_branch_that_goes_on_is_drawn_past_what_hangs_on_its_first_member() {
        let drawn = stems(&[0, 1, 2, 2, 1, 2, 0, 1]);
        assert_eq!(drawn, ["", "├─ ", "│  ├─ ", "│  └─ ", "└─ ", "   └─ ", "", "└─ "]);
    }

    #[test]
    fn a_list_without_members_has_no_lines() {
        assert!(stems(&[]).is_empty());
    }
}
