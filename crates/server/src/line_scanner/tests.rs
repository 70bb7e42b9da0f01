//! Lines in heads, bodies and chunks, in pieces of any size.

use super::*;

/// Scans the connection in pieces of this size. Each head is followed by the next framing. Returns where a bare LF was found.
fn bare_lf(connection: &[u8], framings: &[Framing], piece: usize) -> Option<usize> {
    let mut scanner = LineScanner::new();
    let mut framings = framings.iter();
    let mut at = 0;
    while at < connection.len() {
        if scanner.is_at_head_end() {
            let framing = framings.next().expect("more heads than framings");
            scanner.head_parsed(*framing);
        }
        let end = connection.len().min(at + piece);
        let scan = scanner.scan(&connection[at..end]);
        at += scan.passed;
        match scan.stop {
            Some(Stop::BareLf | Stop::BareLfInChunkSize) => {
                assert!(scanner.is_refused());
                assert_eq!(connection[at], b'\n');
                return Some(at);
            }
            Some(Stop::HeadEnd) => assert!(scanner.is_at_head_end()),
            None => assert_eq!(at, end),
        }
    }
    assert_eq!(framings.next(), None, "fewer heads than framings");
    None
}

fn assert_in_all_pieces(connection: &str, framings: &[Framing], expected: Option<usize>) {
    for piece in 1..=connection.len() {
        let found = bare_lf(connection.as_bytes(), framings, piece);
        assert_eq!(found, expected, "{connection:?} in pieces of {piece}");
    }
}

#[test]
fn lines_that_end_with_crlf_pass() {
    let (empty, chunked) = (Framing::Length(0), Framing::Chunked);
    let get = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    let two = format!("\r\n\r\n{get}{get}G");
    assert_in_all_pieces(&two, &[empty, empty], None);
    let body = format!("POST / HTTP/1.1\r\nhost: x\r\n\r\na\nb\n\n{get}");
    assert_in_all_pieces(&body, &[Framing::Length(5)], None);
    let chunks = format!(
        "PRI / HTTP/1.1\r\n\r\n5\r\na\nb\n\n\r\nA;x=y\r\n\r\n\r\n\r\n\r\n\n\n\r\n0\r\na: b\r\n\r\n{get}"
    );
    assert_in_all_pieces(&chunks, &[chunked], None);
}

#[test]
fn bare_lf_is_found() {
    let empty = Framing::Length(0);
    for (connection, framings) in [
        ("GET / HTTP/1.1¶host: x\r\n\r\n", &[][..]),
        ("GET / HTTP/1.1\r\nhost: x¶\r\n", &[]),
        ("GET / HTTP/1.1\r\nhost: x\r\n¶", &[]),
        ("GET / HTTP/1.1\r\n¶", &[]),
        ("¶GET / HTTP/1.1\r\n\r\n", &[]),
        ("\r\n¶GET / HTTP/1.1\r\n\r\n", &[]),
        ("PRI * HTTP/2.0¶\r\n", &[]),
        ("PRI * HTTP/2.0\r\n¶", &[]),
        ("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1¶", &[empty]),
        ("P / HTTP/1.1\r\n\r\nabc¶", &[Framing::Length(3)]),
        ("P / HTTP/1.1\r\n\r\n3¶abc\r\n", &[Framing::Chunked]),
        ("P / HTTP/1.1\r\n\r\n3;x¶abc\r\n", &[Framing::Chunked]),
        ("P / HTTP/1.1\r\n\r\n0¶\r\n", &[Framing::Chunked]),
        ("P / HTTP/1.1\r\n\r\n0\r\n¶", &[Framing::Chunked]),
        ("P / HTTP/1.1\r\n\r\n0\r\na: b¶\r\n", &[Framing::Chunked]),
    ] {
        let expected = connection.find('¶');
        let connection = connection.replace('¶', "\n");
        assert_in_all_pieces(&connection, framings, expected);
    }
}

#[test]
fn http2_passes() {
    let connection = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n\n\r\n\r\n";
    assert_in_all_pieces(connection, &[], None);
}

#[test]
fn chunk_size_over_the_largest_number_hides_nothing() {
    let connection = "P / HTTP/1.1\r\n\r\nfffffffffffffffff\r\nabc\n";
    assert_in_all_pieces(connection, &[Framing::Chunked], None);
}
