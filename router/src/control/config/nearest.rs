//! The known name that somebody most likely meant.

/// The name among `known` that is nearest to `name` and near enough to be a slip of the fingers.
pub(super) fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_lowercase();
    let far = (name.chars().count() / 3).max(2);
    known
        .into_iter()
        .map(|candidate| (distance(&name, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= far)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean 'x'?`, or nothing if no known name is near.
pub(crate) fn did_you_mean<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    nearest(name, known).map_or_else(String::new, |known| format!("; did you mean '{known}'?"))
}

/// How many letters must be put in, taken out or changed to get from `a` to `b` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (above, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (column, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_single_letter_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("listener", "listener"), 0);
    }

    #[test]
    fn nearest_ignores_case_and_what_is_too_far() {
        assert_eq!(nearest("Listner", ["router", "listener"]), Some("listener"));
        assert_eq!(nearest("bananas", ["router", "listener"]), None);
    }
}
