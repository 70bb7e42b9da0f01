//! The trace that a `traceparent` names, to be shown beside what happened. Makes no spans and decides nothing by it.

/// The trace's id in a `traceparent` of the W3C (version 00: `00-{trace id}-{span id}-{flags}`); none if it is not one.
pub fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.strip_prefix("00-")?.get(..32)?;
    let follows = traceparent.as_bytes().get(35) == Some(&b'-');
    let hex = id
        .bytes()
        .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (follows && hex && id.bytes().any(|byte| byte != b'0')).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::trace_id;

    #[test]
    fn only_what_looks_like_a_trace_is_one() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        let whole = format!("00-{id}-00f067aa0ba902b7-01");
        assert_eq!(trace_id(&whole), Some(id));
        let others = [
            "",
            "00-",
            id,
            &whole.replace("00-4", "01-4"),
            &whole.to_uppercase(),
            &whole.replace(id, "ü".repeat(32).as_str()),
            &whole.replace(id, "0".repeat(32).as_str()),
            &whole[..35],
        ];
        for other in others {
            assert_eq!(trace_id(other), None, "{other}");
        }
    }
}
