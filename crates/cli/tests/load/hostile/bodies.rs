//! Hostile params, batches and broken JSON. Knows no schema and no graph.

use fastrand::Rng;
use leasehold_core::limits::{JSON_MAX_DEPTH, PARAMS_MAX_BYTES};
use leasehold_testkit::sized;
use serde_json::{Value, json};

/// The most bytes of params of which several are in one call: many such calls fit into the time of a test.
const SMALL_BYTES: usize = 16 * 1024;

/// The most bytes of one body. The largest batch takes a debug build many seconds.
fn body_max_bytes() -> usize {
    sized(2, 16) * 1024 * 1024
}

/// The text of params that are valid, of a shape that costs much.
pub(super) fn valid_params(rng: &mut Rng) -> String {
    // Most are small: the server then answers more calls.
    let most = match rng.u8(0..4) {
        0 => PARAMS_MAX_BYTES - 1_000,
        _ => SMALL_BYTES,
    };
    shape(rng, most)
}

fn shape(rng: &mut Rng, most: usize) -> String {
    match rng.u8(0..8) {
        0 => format!("[{}]", repeated("{}", rng.usize(0..most / 3))),
        1 => format!("[{}]", repeated("0", rng.usize(0..most / 2))),
        2 => format!("\"{}\"", "\\u00e9".repeat(rng.usize(0..most / 6))),
        3 => deep(rng, JSON_MAX_DEPTH - 2).to_string(),
        4 => format!("{}.{}e{}", rng.i32(..), rng.u32(..), rng.i32(-200..200)),
        5 => {
            let keys = (0..rng.usize(0..most / 12)).map(|at| format!("\"k{at}\":1"));
            format!("{{{}}}", keys.collect::<Vec<_>>().join(","))
        }
        6 => format!("[{}]", repeated("[[]]", rng.usize(0..most / 5))),
        _ => {
            let text = "a\u{fffe}\u{1f432}".repeat(rng.usize(0..most / 9));
            json!({"a": deep(rng, 50), "list": [1.5, null, true], "text": text}).to_string()
        }
    }
}

/// The text of params that are invalid, or close to it.
pub(super) fn hostile_params(rng: &mut Rng) -> String {
    match rng.u8(0..10) {
        0 => shape(rng, 2 * PARAMS_MAX_BYTES),
        1 => deep(rng, 200).to_string(),
        2 => format!("1e{}", rng.u32(..)),
        3 => "9".repeat(rng.usize(1..5_000)),
        4 => format!("0.{}1", "0".repeat(rng.usize(1..20_000))),
        5 => format!("-{}.5e-{}", rng.u64(..), rng.u16(..)),
        6 => format!("{{{}}}", repeated("\"a\":1", rng.usize(1..1_000))),
        7 => json!({"a": "\u{0}", "b": "a".repeat(rng.usize(0..SMALL_BYTES))}).to_string(),
        8 => ["[", "}", "nul", "\"\\ud800\"", "01", "[1,]", ""][rng.usize(0..7)].to_owned(),
        _ => "1e308".to_owned(),
    }
}

/// Params that are valid three times of four.
pub(super) fn params(rng: &mut Rng) -> String {
    match rng.u8(0..4) {
        0 => hostile_params(rng),
        _ => valid_params(rng),
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
    let mut value = json!(rng.i32(..));
    for _ in 0..rng.usize(0..most) {
        value = match rng.bool() {
            true => json!([value]),
            false => json!({"a": value}),
        };
    }
    value
}

/// A batch of requests or jobs, with up to the bytes of one body; one entry of every other batch is hostile. `entry` is the text around the params.
pub(super) fn batch(rng: &mut Rng, list: &str, entry: [&str; 2]) -> String {
    let (mut items, mut bytes) = (Vec::new(), 0);
    let limit = rng.usize(1..body_max_bytes());
    let tiny = rng.bool();
    while bytes < limit && items.len() < 2_000 {
        let params = match tiny {
            true => format!("[{}]", repeated("{}", rng.usize(0..500))),
            false => valid_params(rng),
        };
        bytes += params.len() + 100;
        items.push(params);
    }
    if rng.bool() {
        let at = rng.usize(0..items.len());
        items[at] = hostile_params(rng);
    }
    let items = items.iter().map(|params| entry.join(params));
    format!("{{\"{list}\":[{}]}}", items.collect::<Vec<_>>().join(","))
}

/// A valid call with bytes changed, cut or repeated, or noise.
pub(super) fn broken(rng: &mut Rng, definition: &str) -> Vec<u8> {
    let text = format!(
        "{{\"definition\":\"{definition}\",\"params\":{}}}",
        valid_params(rng)
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
        2 => bytes = b"[".repeat(rng.usize(1..body_max_bytes())),
        _ => bytes = std::iter::repeat_with(|| rng.u8(..)).take(4_096).collect(),
    }
    bytes
}
