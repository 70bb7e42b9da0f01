//! Encodes a page of leases as compact JSON text and parses it strictly. Pure; knows no database and no clock.

/// Maximum number of leases in one page.
pub(super) const PAGE_CAPACITY: usize = 64;

/// The lease of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The job's id.
    pub(super) job: i64,
    /// The attempt, from 1.
    pub(super) attempt: u32,
    /// When the lease ends.
    pub(super) ends_at: i64,
    /// The job's `run_at`, unless it equals `created_at`.
    pub(super) run_at: Option<i64>,
}

/// Returns when the first lease ends; none for an empty page.
pub(super) fn first_end(entries: &[Entry]) -> Option<i64> {
    entries.iter().map(|entry| entry.ends_at).min()
}

/// Encodes a page whose first lease ends at `first_end`.
pub(super) fn write(entries: &[Entry], first_end: i64) -> String {
    let mut text = String::with_capacity(2 + entries.len() * 24);
    text.push('[');
    for (number, entry) in entries.iter().enumerate() {
        text.push_str(if number == 0 { "[" } else { ",[" });
        push_number(&mut text, entry.job);
        text.push(',');
        push_number(&mut text, i64::from(entry.attempt));
        text.push(',');
        push_number(&mut text, entry.ends_at - first_end);
        if let Some(run_at) = entry.run_at {
            text.push(',');
            push_number(&mut text, run_at);
        }
        text.push(']');
    }
    text.push(']');
    text
}

/// Parses the text of `write`; none for any other text.
pub(super) fn read(text: &str, first_end: i64) -> Option<Vec<Entry>> {
    let mut parser = Parser(text.as_bytes());
    let mut entries = Vec::with_capacity(PAGE_CAPACITY);
    parser.skip(b'[')?;
    while parser.skip(b']').is_none() {
        if !entries.is_empty() {
            parser.skip(b',')?;
        }
        entries.push(entry(&mut parser, first_end)?);
    }
    parser.0.is_empty().then_some(entries)
}

fn entry(parser: &mut Parser<'_>, first_end: i64) -> Option<Entry> {
    parser.skip(b'[')?;
    let job = parser.number()?;
    parser.skip(b',')?;
    let attempt = u32::try_from(parser.number()?).ok()?;
    parser.skip(b',')?;
    let ends_at = first_end.checked_add(parser.number()?)?;
    let run_at = match parser.skip(b',') {
        Some(()) => Some(parser.number()?),
        None => None,
    };
    parser.skip(b']')?;
    Some(Entry {
        job,
        attempt,
        ends_at,
        run_at,
    })
}

/// Appends a number. The standard library's formatting would dominate the cost of `write`.
fn push_number(text: &mut String, number: i64) {
    if number < 0 {
        text.push('-');
    }
    let mut digits = [0_u8; 20];
    let (mut at, mut left) = (digits.len(), number.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(left % 10).unwrap_or_default();
        left /= 10;
        if left == 0 {
            break;
        }
    }
    text.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

/// The unparsed rest of the text.
struct Parser<'a>(&'a [u8]);

impl Parser<'_> {
    fn skip(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    fn number(&mut self) -> Option<i64> {
        let minus = self.skip(b'-').is_some();
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        // Accumulated as a negative number, because i64::MIN has no positive counterpart.
        let value = number.iter().try_fold(0_i64, |value, digit| {
            value.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))
        })?;
        if minus {
            Some(value)
        } else {
            value.checked_neg()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(job: i64, attempt: u32, ends_at: i64, run_at: Option<i64>) -> Entry {
        Entry {
            job,
            attempt,
            ends_at,
            run_at,
        }
    }

    #[test]
    fn page_round_trips() {
        let pages = [
            vec![],
            vec![entry(1, 1, 1_700_000_000_000_000, None)],
            (0..64)
                .map(|n| {
                    entry(
                        n * 7,
                        25,
                        1_700_000_000_000_000 + n,
                        (n % 2 == 0).then_some(-n),
                    )
                })
                .collect(),
            vec![
                entry(i64::MAX, u32::MAX, 5, Some(i64::MIN)),
                entry(i64::MIN, 0, 0, Some(i64::MAX)),
            ],
        ];
        for page in pages {
            let first = first_end(&page).unwrap_or_default();
            let text = write(&page, first);
            assert_eq!(read(&text, first), Some(page), "{text}");
        }
    }

    #[test]
    fn page_is_compact_json() {
        let page = [entry(7, 1, 100, None), entry(8, 2, 130, Some(90))];
        assert_eq!(write(&page, 100), "[[7,1,0],[8,2,30,90]]");
    }

    #[test]
    fn truncated_or_malformed_page_is_rejected() {
        let page = [entry(7, 1, 100, None), entry(-8, 2, 130, Some(90))];
        let text = write(&page, 100);
        for end in 0..text.len() {
            assert_eq!(read(&text[..end], 100), None, "{}", &text[..end]);
        }
        for malformed in [
            "null",
            "[[]]",
            "[[1,2]]",
            "[[1,2,3,4,5]]",
            "[[1,-2,3]]",
            "[[1,2,3],]",
            "[[1,2,3]] ",
            "[[1.5,2,3]]",
            "[[9223372036854775808,1,1]]",
            "[[1,1,9223372036854775807]]",
        ] {
            assert_eq!(read(malformed, 100), None, "{malformed}");
        }
    }
}
