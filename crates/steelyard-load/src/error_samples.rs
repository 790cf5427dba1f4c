//! Samples of error texts: the first few of each kind, as the servers send them. Counts alone do not show the cause.

use std::collections::BTreeMap;

use crate::outcome::Outcome;

/// Different texts of one kind of error that are kept: servers put keys and sizes into them, so there may be one for each
/// operation.
const MOST_OF_A_KIND: usize = 3;
const MOST_CHARACTERS: usize = 300;

/// The first few different texts of each kind of error.
#[derive(Clone, Debug, Default)]
pub struct ErrorSamples(Vec<(Outcome, String)>);

impl ErrorSamples {
    /// Keeps a text, unless it is known or its kind has enough of them.
    pub fn add(&mut self, outcome: Outcome, text: &str) {
        let end = text
            .char_indices()
            .nth(MOST_CHARACTERS)
            .map_or(text.len(), |(at, _)| at);
        let text = &text[..end];
        let same_kind = self.0.iter().filter(|(kind, _)| *kind == outcome);
        let (mut count, mut known) = (0, false);
        for (_, other) in same_kind {
            count += 1;
            known |= other == text;
        }
        if !known && count < MOST_OF_A_KIND {
            self.0.push((outcome, text.to_owned()));
        }
    }

    /// Keeps another's texts, too.
    pub fn merge(&mut self, other: &Self) {
        for (outcome, text) in &other.0 {
            self.add(*outcome, text);
        }
    }

    /// Hands its texts to another, and has none afterwards.
    #[inline]
    pub fn move_to(&mut self, other: &mut Self) {
        if !self.0.is_empty() {
            other.merge(self);
            self.0.clear();
        }
    }

    /// Forgets all samples.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The texts by the names of the errors' kinds, in the order in which they came.
    pub fn by_kind(&self) -> BTreeMap<String, Vec<String>> {
        let mut by_kind: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (outcome, text) in &self.0 {
            by_kind.entry(outcome.name().to_owned()).or_default().push(text.clone());
        }
        by_kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_keeps_its_first_texts_once_and_short() {
        let mut samples = ErrorSamples::default();
        for number in 0..10 {
            samples.add(Outcome::Server, &format!("no {number}"));
            samples.add(Outcome::Server, "no 0");
        }
        samples.add(Outcome::Overloaded, &"ü".repeat(1000));
        let mut sum = ErrorSamples::default();
        sum.add(Outcome::Server, "no 1");
        samples.move_to(&mut sum);
        assert!(samples.by_kind().is_empty());
        let by_kind = sum.by_kind();
        assert_eq!(by_kind["server"], ["no 1", "no 0", "no 2"]);
        assert_eq!(by_kind["overloaded"], ["ü".repeat(MOST_CHARACTERS)]);
    }
}
