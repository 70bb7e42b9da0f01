//! Hostile params, batches and broken JSON. Knows no schema and no graph.

use super::grammar::BODY_MAX_BYTES;
use fastrand::Rng;
use leasehold_core::limits::PARAMS_MAX_BYTES;
use serde_json::{Value, json};

/// The text of hostile params: valid JSON of a shape that costs much, or invalid JSON.
pub(super) fn params(rng: &mut Rng) -> String {
    let most = PARAMS_MAX_BYTES;
    match rng.u8(0..9) {
        0 => format!("[{}]", repeated("{}", rng.usize(0..most / 3))),
        1 => format!("[{}]", repeated("0", rng.usize(0..most / 2))),
        2 => format!("\"{}\"", "\\u00e9".repeat(rng.usize(0..most / 6))),
        3 => deep(rng, 200).to_string(),
        4 => number(rng),
        5 => {
            let keys = (0..rng.usize(0..most / 12)).map(|at| format!("\"k{at}\":1"));
            format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
        }
        6 => format!("{{{}}}", repeated("\"a\":1", rng.usize(1..1_000))),
        7 => json!({"a": "\u{0}\u{fffe}", "b": "a".repeat(rng.usize(0..most))}).to_string(),
        _ => json!({"a": deep(rng, 60), "b": [1.5, null, true]}).to_string(),
    }
}

/// Repeats a text, with commas between.
fn repeated(text: &str, times: usize) -> String {
    let mut all = format!("{text},").repeat(times);
    all.pop();
    all
}

/// A value nested up to `most` levels.
pub(super) fn deep(rng: &mut Rng, most: usize) -> Value {
    let mut value = json!(rng.i64(..));
    for _ in 0..rng.usize(0..most) {
        value = match rng.bool() {
            true => json!([value]),
            false => json!({"a": value}),
        };
    }
    value
}

fn number(rng: &mut Rng) -> String {
    match rng.u8(0..5) {
        0 => format!("1e{}", rng.u32(..)),
        1 => "9".repeat(rng.usize(1..5_000)),
        2 => format!("0.{}1", "0".repeat(rng.usize(1..5_000))),
        3 => format!("-{}.5e-{}", rng.u64(..), rng.u16(..)),
        _ => "1e308".to_owned(),
    }
}

/// A batch of requests, with up to the bytes of one body.
pub(super) fn batch(rng: &mut Rng, definition: &str) -> String {
    let (mut items, mut bytes) = (Vec::new(), 0);
    let limit = rng.usize(1..BODY_MAX_BYTES);
    let tiny = rng.bool();
    while bytes < limit && items.len() < 10_000 {
        let params = match tiny {
            true => format!("[{}]", repeated("{}", rng.usize(0..500))),
            false => params(rng),
        };
        bytes += params.len() + 100;
        items.push(format!(
            "{{\"definition\":\"{definition}\",\"params\":{params}}}"
        ));
    }
    format!("{{\"requests\":[{}]}}", items.join(","))
}

/// A valid call with bytes changed, cut or repeated, or noise.
pub(super) fn broken(rng: &mut Rng, definition: &str) -> Vec<u8> {
    let text = format!(
        "{{\"definition\":\"{definition}\",\"params\":{}}}",
        params(rng)
    );
    let mut bytes = text.into_bytes();
    match rng.u8(0..4) {
        0 => bytes.truncate(rng.usize(0..bytes.len())),
        1 => {
            for _ in 0..rng.usize(1..20) {
                let at = rng.usize(0..bytes.len());
                bytes[at] = rng.u8(..);
            }
        }
        2 => bytes = b"[".repeat(rng.usize(1..BODY_MAX_BYTES)),
        _ => bytes = std::iter::repeat_with(|| rng.u8(..)).take(4_096).collect(),
    }
    bytes
}
