//! Cursors: positions in lists and streams, which a caller can neither read, change nor use for another list. Knows no list.
//!
//! A cursor is deterministic authenticated encryption in the manner of SIV: the tag is an HMAC of the position and of what the cursor belongs to, and the
//! position is encrypted with a key stream that starts from the tag. Equal positions give equal cursors, and there is no nonce that could repeat.

use crate::WorkspaceId;
use crate::hmac::hmac_sha256;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

/// The first byte of a cursor: its format.
const VERSION: u8 = 1;
const TAG_BYTES: usize = 16;
/// Reserved for the epoch of the database's history, zero until there are epochs.
const EPOCH: [u8; 8] = [0; 8];

/// The keys of an installation's cursors.
pub struct CursorKey {
    authentication: [u8; 32],
    encryption: [u8; 32],
}

/// What a cursor belongs to. A cursor of anything else is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorContext<'a> {
    /// The list or stream.
    pub list: &'a str,
    /// The workspace; none for a list of all.
    pub workspace: Option<WorkspaceId>,
    /// The queue or definition whose items are listed, if the list is of one.
    pub within: &'a str,
}

impl CursorKey {
    /// Derives the keys from the installation's secret.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self {
            authentication: hmac_sha256(secret, &[b"leasehold cursor authentication"]),
            encryption: hmac_sha256(secret, &[b"leasehold cursor encryption"]),
        }
    }

    /// Writes a position as a cursor.
    pub fn seal(&self, context: &CursorContext<'_>, position: &[u8]) -> String {
        let mut body = [&EPOCH, position].concat();
        let tag = self.tag(context, &body);
        self.apply_key_stream(&tag, &mut body);
        URL_SAFE_NO_PAD.encode([&[VERSION], &tag[..], &body].concat())
    }

    /// Returns the position of a cursor; none unless this installation wrote it for the same list.
    pub fn open(&self, context: &CursorContext<'_>, text: &str) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (version, rest) = bytes.split_first()?;
        let (tag, body) = rest.split_first_chunk::<TAG_BYTES>()?;
        let mut body = body.to_vec();
        self.apply_key_stream(tag, &mut body);
        let is_genuine = bool::from(self.tag(context, &body).ct_eq(tag));
        let position = body.strip_prefix(&EPOCH)?;
        (is_genuine && *version == VERSION).then(|| position.to_vec())
    }

    /// The tag of a position. Each part has its length before it, so that no two contexts give the same bytes.
    fn tag(&self, context: &CursorContext<'_>, body: &[u8]) -> [u8; TAG_BYTES] {
        let workspace = context.workspace.map(|id| id.0.into_bytes());
        let workspace = workspace.as_ref().map_or(&[][..], |id| &id[..]);
        let parts = [
            context.list.as_bytes(),
            workspace,
            context.within.as_bytes(),
        ];
        let lengths = parts.map(|part| (part.len() as u64).to_be_bytes());
        let mac = hmac_sha256(
            &self.authentication,
            &[
                &[VERSION],
                &lengths[0],
                parts[0],
                &lengths[1],
                parts[1],
                &lengths[2],
                parts[2],
                body,
            ],
        );
        let mut tag = [0; TAG_BYTES];
        tag.copy_from_slice(&mac[..TAG_BYTES]);
        tag
    }

    /// Encrypts or decrypts the body.
    fn apply_key_stream(&self, tag: &[u8; TAG_BYTES], body: &mut [u8]) {
        for (number, block) in (0u64..).zip(body.chunks_mut(32)) {
            let stream = hmac_sha256(&self.encryption, &[tag, &number.to_be_bytes()]);
            for (byte, key) in block.iter_mut().zip(stream) {
                *byte ^= key;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use uuid::Uuid;

    const LIST: CursorContext<'static> = CursorContext {
        list: "request_list",
        workspace: Some(WorkspaceId(Uuid::from_u128(7))),
        within: "",
    };

    fn key() -> CursorKey {
        CursorKey::new(&[7; 32])
    }

    #[test]
    fn position_round_trips_and_cannot_be_read() {
        for position in [
            "",
            "7",
            "00000000-0000-0000-0000-000000000001",
            &"x".repeat(3_000),
        ] {
            let cursor = key().seal(&LIST, position.as_bytes());
            assert_eq!(key().open(&LIST, &cursor).unwrap(), position.as_bytes());
            assert_eq!(cursor, key().seal(&LIST, position.as_bytes()));
            let bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
            if position.len() > 4 {
                let visible = bytes
                    .windows(position.len())
                    .any(|part| part == position.as_bytes());
                assert!(!visible);
            }
        }
    }

    #[test]
    fn cursor_of_another_list_workspace_or_installation_is_rejected() {
        let cursor = key().seal(&LIST, b"7");
        let other = CursorKey::new(&[8; 32]);
        assert_eq!(other.open(&LIST, &cursor), None);
        for context in [
            CursorContext {
                list: "job_list",
                ..LIST
            },
            CursorContext {
                workspace: None,
                ..LIST
            },
            CursorContext {
                workspace: Some(WorkspaceId(Uuid::nil())),
                ..LIST
            },
            CursorContext {
                within: "orders",
                ..LIST
            },
            CursorContext {
                list: "request_lis",
                within: "t",
                ..LIST
            },
        ] {
            assert_eq!(key().open(&context, &cursor), None, "{context:?}");
        }
    }

    #[test]
    fn changed_truncated_or_extended_cursor_is_rejected() {
        let cursor = key().seal(&LIST, b"00000000-0000-0000-0000-000000000001");
        for length in 0..cursor.len() {
            assert_eq!(key().open(&LIST, &cursor[..length]), None);
        }
        assert_eq!(key().open(&LIST, &format!("{cursor}AAAA")), None);
        let bytes = URL_SAFE_NO_PAD.decode(&cursor).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let changed = URL_SAFE_NO_PAD.encode(changed);
            assert_eq!(key().open(&LIST, &changed), None, "bit {bit}");
        }
    }
}
