//! What was probably meant.

/// The candidates that are close to a word, or begin with it, as cobra picks them.
pub fn suggestions<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const BYTES_MAX: usize = 64;
    let lower = if word.len() <= BYTES_MAX { word.to_lowercase() } else { return Vec::new() };
    let near = |candidate: &&str| {
        strsim::levenshtein(&lower, &candidate.to_lowercase()) <= 2 || candidate.to_lowercase().starts_with(&lower)
    };
    candidates.into_iter().filter(near).collect()
}
