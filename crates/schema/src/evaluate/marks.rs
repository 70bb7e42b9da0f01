//! Which properties or items of a value some keyword has evaluated, for `unevaluatedProperties` and `unevaluatedItems`.

/// A set of positions in an object or an array.
#[derive(Debug, Default)]
pub(super) struct Marks {
    all: bool,
    words: Vec<u64>,
}

impl Marks {
    pub(super) fn insert(&mut self, position: usize) {
        let word = position / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (position % 64);
    }

    pub(super) fn insert_all(&mut self) {
        self.all = true;
    }

    pub(super) fn contains(&self, position: usize) -> bool {
        let word = self.words.get(position / 64).copied().unwrap_or(0);
        self.all || word & 1 << (position % 64) != 0
    }

    /// Adds the positions of another set; returns the steps that it took.
    pub(super) fn merge(&mut self, other: &Self) -> u64 {
        self.all |= other.all;
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
        1 + other.words.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_merged() {
        let (mut a, mut b) = (Marks::default(), Marks::default());
        a.insert(3);
        b.insert(130);
        a.merge(&b);
        assert!(a.contains(3) && a.contains(130) && !a.contains(4) && !a.contains(1_000));
        let mut all = Marks::default();
        all.insert_all();
        a.merge(&all);
        assert!(a.contains(1_000));
    }
}
