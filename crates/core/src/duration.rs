//! Durations as the API and the databases write them.

use std::time::Duration;

/// Whole milliseconds of `time`, for a field or a column that ends in `_ms`. At most `i64::MAX`, so that a signed column holds it.
pub fn millis(time: Duration) -> u64 {
    let most = i64::MAX.cast_unsigned();
    u64::try_from(time.as_millis()).map_or(most, |millis| millis.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_beyond_every_column_is_the_longest_that_a_column_holds() {
        assert_eq!(millis(Duration::from_micros(1_999)), 1);
        assert_eq!(millis(Duration::MAX).cast_signed(), i64::MAX);
        assert_eq!(
            millis(Duration::from_millis(u64::MAX)).cast_signed(),
            i64::MAX
        );
    }
}
