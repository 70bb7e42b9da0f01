//! A fuzzer for parsers: mutates examples, and keeps the inputs that lead to a new outcome. Knows no format.

use crate::sized;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant, SystemTime};

/// The seconds that each fuzz test runs, instead of its usual time.
pub const FUZZ_SECONDS_VARIABLE: &str = "LEASEHOLD_FUZZ_SECONDS";
/// The seed that repeats a run.
pub const FUZZ_SEED_VARIABLE: &str = "LEASEHOLD_FUZZ_SEED";

/// The longest input, in bytes.
const INPUT_MAX_BYTES: usize = 4096;
/// The longest time that one input may take. Far more than any parser needs for so few bytes, also on a busy machine.
const INPUT_MAX_TIME: Duration = Duration::from_secs(60);
/// The most inputs that are kept.
const KEPT_MAX: usize = 2_000;
/// The most mutations of one input.
const MUTATIONS_MAX: usize = 6;
/// The fewest mutated inputs of a run. The time alone is no measure: a busy machine may not run the test while it passes.
const MUTATED_MIN: usize = 500;

/// Runs a check on mutated inputs.
///
/// ```
/// use leasehold_testkit::Fuzzer;
///
/// Fuzzer::new(&["1", "-7"]).tokens(&["0", "99999999999"]).run(|input| {
///     let text = str::from_utf8(input).ok()?;
///     let number: i64 = text.parse().ok()?;
///     assert_eq!(number.to_string().parse(), Ok(number));
///     Some(number.signum())
/// });
/// ```
#[derive(Debug)]
pub struct Fuzzer {
    inputs: Vec<Vec<u8>>,
    tokens: Vec<Vec<u8>>,
    random: Random,
    seed: u64,
}

impl Fuzzer {
    /// Creates a fuzzer that begins with these examples.
    pub fn new(examples: &[&str]) -> Self {
        Self::of_bytes(
            &examples
                .iter()
                .map(|text| text.as_bytes())
                .collect::<Vec<_>>(),
        )
    }

    /// Creates a fuzzer that begins with these examples of a binary format.
    pub fn of_bytes(examples: &[&[u8]]) -> Self {
        let seed = match std::env::var(FUZZ_SEED_VARIABLE) {
            Ok(text) => text.parse().expect("the seed is a number"),
            Err(_) => SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .map_or(1, |since| since.as_nanos() as u64 | 1),
        };
        Self {
            inputs: examples.iter().map(|bytes| bytes.to_vec()).collect(),
            tokens: Vec::new(),
            random: Random(seed),
            seed,
        }
    }

    /// Adds parts of the format that mutations insert.
    #[must_use]
    pub fn tokens(mut self, tokens: &[&str]) -> Self {
        self.tokens.extend(bytes(tokens));
        self
    }

    /// Runs the check: on each example, and then on mutated inputs for a tenth of a second, or for twenty seconds under `--full`, and on at
    /// least 500. The check panics for an input that must not exist. It returns an outcome; an input with a new outcome is kept and mutated further.
    ///
    /// # Panics
    /// If the check does, or takes too long. The input and the seed are printed.
    pub fn run<T: Hash>(mut self, check: impl Fn(&[u8]) -> T) {
        let mut known = HashSet::new();
        for input in &self.inputs {
            known.insert(run_one(input, self.seed, &check));
        }
        let end = Instant::now() + duration();
        let mut mutated = 0;
        while mutated < MUTATED_MIN || Instant::now() < end {
            mutated += 1;
            let input = self.mutated();
            let outcome = run_one(&input, self.seed, &check);
            if self.inputs.len() < KEPT_MAX && known.insert(outcome) {
                self.inputs.push(input);
            }
        }
    }

    fn mutated(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        let mut input = random.of(&self.inputs).cloned().unwrap_or_default();
        for _ in 0..=random.below(MUTATIONS_MAX) {
            let (start, end) = random.range(input.len());
            match random.below(8) {
                0 => drop(input.drain(start..end)),
                1 => input.truncate(start),
                2 => insert(&mut input, start, &[random.next() as u8]),
                3 => match input.get_mut(start) {
                    Some(byte) => *byte = random.next() as u8,
                    None => input.push(random.next() as u8),
                },
                4 => {
                    let part = input[start..end].to_vec();
                    let times = 1 + random.below(64);
                    insert(&mut input, start, &part.repeat(times));
                }
                5 => {
                    let other = random.of(&self.inputs).cloned().unwrap_or_default();
                    let (from, to) = random.range(other.len());
                    insert(&mut input, start, &other[from..to]);
                }
                _ => {
                    let token = random.of(&self.tokens).cloned().unwrap_or_default();
                    let times = 1 + random.below(2) * random.below(100);
                    insert(&mut input, start, &token.repeat(times));
                }
            }
        }
        input.truncate(INPUT_MAX_BYTES);
        input
    }
}

/// Runs the check on one input and returns the hash of the outcome.
fn run_one<T: Hash>(input: &[u8], seed: u64, check: impl Fn(&[u8]) -> T) -> u64 {
    let _shown = ShownOnPanic { input, seed };
    let begun = Instant::now();
    let outcome = check(input);
    let elapsed = begun.elapsed();
    assert!(elapsed < INPUT_MAX_TIME, "the input took {elapsed:?}");
    let mut hasher = DefaultHasher::new();
    outcome.hash(&mut hasher);
    hasher.finish()
}

/// Prints the input if the check panics.
struct ShownOnPanic<'a> {
    input: &'a [u8],
    seed: u64,
}

impl Drop for ShownOnPanic<'_> {
    #[allow(clippy::print_stderr, reason = "the output of a failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (input, seed) = (self.input.escape_ascii(), self.seed);
            eprintln!("input: \"{input}\"\nrepeat the run with {FUZZ_SEED_VARIABLE}={seed}");
        }
    }
}

fn duration() -> Duration {
    match std::env::var(FUZZ_SECONDS_VARIABLE) {
        Ok(text) => Duration::from_secs(text.parse().expect("a number of seconds")),
        Err(_) => sized(Duration::from_millis(100), Duration::from_secs(20)),
    }
}

fn bytes(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn insert(input: &mut Vec<u8>, at: usize, part: &[u8]) {
    let room = INPUT_MAX_BYTES.saturating_sub(input.len());
    let part = &part[..part.len().min(room)];
    input.splice(at..at, part.iter().copied());
}

/// An xorshift generator; its state must not be zero.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    fn of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// A part of an input with this length, usually short.
    fn range(&mut self, length: usize) -> (usize, usize) {
        let start = self.below(length + 1);
        let most = match self.below(4) {
            0 => length - start,
            _ => (length - start).min(16),
        };
        (start, start + self.below(most + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn inputs_with_new_outcomes_are_mutated_further() {
        // One mutation of the example rarely reaches three brackets in a row; of a kept input it does.
        let deepest = RefCell::new(0);
        Fuzzer::new(&["[]"]).tokens(&["["]).run(|input| {
            let depth = input.iter().take_while(|byte| **byte == b'[').count();
            let mut deepest = deepest.borrow_mut();
            *deepest = depth.max(*deepest);
            depth
        });
        assert!(deepest.into_inner() > 10);
    }

    #[test]
    fn a_seed_repeats_the_inputs() {
        let inputs = |seed| {
            let mut fuzzer = Fuzzer::new(&["abc", "12"]).tokens(&["\0", "{}"]);
            fuzzer.random = Random(seed);
            let inputs: Vec<_> = (0..100).map(|_| fuzzer.mutated()).collect();
            assert!(inputs.iter().all(|input| input.len() <= INPUT_MAX_BYTES));
            inputs
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }

    #[test]
    #[should_panic(expected = "odd")]
    fn failing_check_ends_the_run() {
        Fuzzer::new(&["aa"]).run(|input| assert!(input.len().is_multiple_of(2), "odd"));
    }
}
