//! Suggestions for mistyped names.

/// The known name most similar to `name`, unless more than half of it would have to change.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_ascii_lowercase();
    let (distance, near) = known
        .into_iter()
        .map(|known| (strsim::osa_distance(&wanted, &known.to_ascii_lowercase()), known))
        .min_by_key(|&(distance, _)| distance)?;
    (distance * 2 <= wanted.chars().count().max(2)).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_name_is_suggested() {
        let known = ["VM.Standard2.1", "VM.Standard2.16", "BM.HPC2.36"];
        assert_eq!(nearest("vm.standard2.1", known), Some("VM.Standard2.1"));
        assert_eq!(nearest("VM.Standrd2.1", known), Some("VM.Standard2.1"));
        assert_eq!(nearest("VM.Satndard2.16", known), Some("VM.Standard2.16"));
        assert_eq!(nearest("m1.small", known), None);
        assert_eq!(nearest("x", []), None);
    }
}
