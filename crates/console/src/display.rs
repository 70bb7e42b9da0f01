//! Formats values for tables: ages, durations, timestamps, coloured states. Pure.

use crate::output::{Output, Tone, clean};
use leasehold_core::graph::NodeState;
use leasehold_core::{ExecutionStatus, JobStatus, JsonText, Named, RequestStatus, Timestamp};
use serde_json::Value;
use std::fmt::Display;

/// Maximum length of a text in a table cell.
const CELL_MAX_CHARS: usize = 60;

/// Formats the distance of `at` from `now` in its largest unit: `5m ago`, `in 5m`.
pub(crate) fn age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs();
    match seconds {
        i64::MIN..=-1 => format!("in {}", unit(-seconds)),
        0 => "now".to_owned(),
        _ => format!("{} ago", unit(seconds)),
    }
}

fn unit(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Formats the time between two timestamps.
pub(crate) fn elapsed(from: Timestamp, to: Timestamp) -> String {
    duration(u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0))
}

/// Formats a duration with one or two units.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        ..1_000 => format!("{millis}ms"),
        1_000..60_000 => {
            let tenths = millis / 100;
            match (tenths / 10, tenths % 10) {
                (whole, 0) => format!("{whole}s"),
                (whole, part) => format!("{whole}.{part}s"),
            }
        }
        60_000..3_600_000 => parts(millis / 60_000, "m", millis / 1_000 % 60, "s"),
        _ => parts(millis / 3_600_000, "h", millis / 60_000 % 60, "m"),
    }
}

fn parts(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

pub(crate) fn timestamp(at: Timestamp) -> String {
    format!("{at:.3}")
}

pub(crate) fn optional_timestamp(at: Option<Timestamp>) -> String {
    at.map(timestamp).unwrap_or_default()
}

/// The time of day, in UTC.
pub(crate) fn time_of_day(at: Timestamp) -> String {
    at.strftime("%H:%M:%S").to_string()
}

/// Removes control characters and truncates to a table cell.
pub(crate) fn truncate(text: &str) -> String {
    let text = clean(text);
    if text.chars().count() <= CELL_MAX_CHARS {
        return text;
    }
    let kept: String = text.chars().take(CELL_MAX_CHARS - 1).collect();
    format!("{kept}…")
}

pub(crate) fn json_cell(json: &JsonText) -> String {
    truncate(json.as_str())
}

/// Formats a number of bytes in the largest unit that leaves at least 1: `512 MiB`, `1.5 KiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let Some((shift, unit)) = units.into_iter().find(|(shift, _)| bytes >> shift > 0) else {
        return format!("{bytes} B");
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    match tenths % 10 {
        0 => format!("{} {unit}", tenths / 10),
        rest => format!("{}.{rest} {unit}", tenths / 10),
    }
}

pub(crate) fn word_if(is: bool, word: &str) -> String {
    if is { word.to_owned() } else { String::new() }
}

pub(crate) fn limit(limit: Option<u32>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}

/// Formats a status; one that only a newer program knows is a plain text.
fn named<T: Copy + Display>(status: &Named<T>, format: impl Fn(T) -> String) -> String {
    let unknown = || clean(&status.to_string());
    status.known().map_or_else(unknown, format)
}

pub(crate) fn request_status(out: &Output, status: &Named<RequestStatus>) -> String {
    named(status, |status| {
        let tone = match status {
            RequestStatus::Pending => return status.to_string(),
            RequestStatus::Claimed | RequestStatus::Dispatched => Tone::Busy,
            RequestStatus::Completed => Tone::Good,
            RequestStatus::Failed => Tone::Bad,
        };
        out.tone(tone, status.as_str())
    })
}

pub(crate) fn execution_status(out: &Output, status: &Named<ExecutionStatus>) -> String {
    named(status, |status| {
        let tone = match status {
            ExecutionStatus::Running => Tone::Busy,
            ExecutionStatus::Completed => Tone::Good,
            ExecutionStatus::Failed | ExecutionStatus::Cancelled => Tone::Bad,
        };
        out.tone(tone, status.as_str())
    })
}

pub(crate) fn job_status(out: &Output, status: &Named<JobStatus>) -> String {
    named(status, |status| {
        let tone = match status {
            JobStatus::Queued => return status.to_string(),
            JobStatus::Running => Tone::Busy,
            JobStatus::Completed => Tone::Good,
            JobStatus::Failed => Tone::Bad,
        };
        out.tone(tone, status.as_str())
    })
}

pub(crate) fn node_state(out: &Output, state: NodeState) -> String {
    let word = serde_json::to_value(state).ok();
    let word = word.as_ref().and_then(Value::as_str).unwrap_or_default();
    let tone = match state {
        NodeState::Waiting => Tone::Quiet,
        NodeState::Running => Tone::Busy,
        NodeState::Completed => Tone::Good,
        NodeState::Failed | NodeState::Cancelled => Tone::Bad,
    };
    out.tone(tone, word)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn durations_have_one_or_two_units() {
        for (millis, expected) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1s"),
            (1_250, "1.2s"),
            (59_999, "59.9s"),
            (61_000, "1m1s"),
            (3_600_000, "1h"),
            (5_400_000, "1h30m"),
        ] {
            assert_eq!(duration(millis), expected);
        }
    }

    #[test]
    fn bytes_use_the_largest_unit() {
        for (number, expected) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_536, "1.5 KiB"),
            (512 << 20, "512 MiB"),
            (4 << 30, "4 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ] {
            assert_eq!(bytes(number), expected);
        }
    }

    #[test]
    fn ages_use_the_largest_unit_past_and_future() {
        let now: Timestamp = "2026-11-16T12:00:00Z".parse().unwrap();
        for (at, expected) in [
            ("2026-11-16T12:00:00Z", "now"),
            ("2026-11-16T11:59:01Z", "59s ago"),
            ("2026-11-16T10:30:00Z", "1h ago"),
            ("2026-11-13T12:00:00Z", "3d ago"),
            ("2026-11-16T12:05:00Z", "in 5m"),
        ] {
            assert_eq!(age(at.parse().unwrap(), now), expected);
        }
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(truncate("a\x1b[2Jb\nc"), "a\u{fffd}[2Jb c");
        assert_eq!(truncate(&"ä".repeat(100)).chars().count(), CELL_MAX_CHARS);
    }
}
