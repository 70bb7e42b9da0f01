//! Dates and times of RFC 3339.

/// `YYYY-MM-DD`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let mut fields = text.split('-');
    let (year, month, day) = (fields.next(), fields.next(), fields.next());
    if fields.next().is_some() {
        return false;
    }
    let year = year.and_then(|digits| number(digits, 4));
    let month = month.and_then(|digits| number(digits, 2));
    let day = day.and_then(|digits| number(digits, 2));
    match (year, month, day) {
        (Some(year), Some(month), Some(day)) => (1..=days(year, month)).contains(&day),
        _ => false,
    }
}

fn days(year: u32, month: u32) -> u32 {
    let is_leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    }
}

/// `HH:MM:SS`, fractions of a second, `Z` or an offset. A leap second is at 23:59:60 UTC.
pub(super) fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else {
        return false;
    };
    let mut fields = clock.split(':');
    let hour = fields.next().and_then(|digits| number(digits, 2));
    let minute = fields.next().and_then(|digits| number(digits, 2));
    let second = fields.next().and_then(|digits| number(digits, 2));
    let (Some(hour), Some(minute), Some(second)) = (hour, minute, second) else {
        return false;
    };
    let Some(offset) = offset_minutes(without_fraction(rest)) else {
        return false;
    };
    if hour > 23 || minute > 59 || second > 60 {
        return false;
    }
    let in_utc = (hour * 60 + minute).cast_signed() - offset;
    second < 60 || in_utc.rem_euclid(24 * 60) == 23 * 60 + 59
}

fn without_fraction(text: &str) -> &str {
    let Some(digits) = text.strip_prefix('.') else {
        return text;
    };
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == digits.len() { "" } else { rest }
}

/// The minutes by which a local time is ahead of UTC.
fn offset_minutes(text: &str) -> Option<i32> {
    if text.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match text.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text[1..].split_once(':')?;
    let (hours, minutes) = (number(hours, 2)?, number(minutes, 2)?);
    (hours <= 23 && minutes <= 59).then(|| sign * (hours * 60 + minutes).cast_signed())
}

/// A date, `T` and a time.
pub(super) fn is_date_time(text: &str) -> bool {
    text.split_once(['T', 't'])
        .is_some_and(|(date, time)| is_date(date) && is_time(time))
}

/// Reads exactly `digits` decimal digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_exist() {
        for text in ["2024-02-29", "2000-02-29", "0000-01-01", "1963-06-19"] {
            assert!(is_date(text), "{text}");
        }
        for text in [
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-04-31",
            "2024-1-01",
            "2024-01-00",
            "24-01-01",
            "2024-01-011",
            "2024/01/01",
            "২024-01-01",
            "",
            "2024-01-01-",
        ] {
            assert!(!is_date(text), "{text}");
        }
    }

    #[test]
    fn times_have_an_offset() {
        for text in [
            "08:30:06Z",
            "08:30:06.283185z",
            "08:30:06+00:20",
            "08:30:06-23:59",
            "23:59:60Z",
            "23:29:60-00:30",
            "01:29:60+01:30",
            "00:29:60.5+00:30",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in [
            "08:30:06",
            "8:30:06Z",
            "24:00:00Z",
            "00:60:00Z",
            "00:00:61Z",
            "22:59:60Z",
            "08:30:06.Z",
            "08:30:06+24:00",
            "08:30:06+1:00",
            "08:30:06 Z",
            "08:30:06ZZ",
            "",
            "08:30:0é",
            "01:02:03+00:00x",
        ] {
            assert!(!is_time(text), "{text}");
        }
    }

    #[test]
    fn date_time_is_both() {
        assert!(is_date_time("1963-06-19T08:30:06.283185Z"));
        assert!(is_date_time("1963-06-19t08:30:06z"));
        assert!(!is_date_time("1963-06-19 08:30:06Z"));
        assert!(!is_date_time("1963-06-19T"));
    }
}
