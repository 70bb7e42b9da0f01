//! HMAC-SHA256 (RFC 2104).

use sha2::{Digest, Sha256};

const BLOCK_BYTES: usize = 64;

/// Returns the HMAC of these parts, one after the other. The key has at most 64 bytes.
pub(crate) fn hmac_sha256(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |byte: u8| {
        let mut block = [byte; BLOCK_BYTES];
        for (padded, key) in block.iter_mut().zip(key) {
            *padded ^= key;
        }
        block
    };
    let mut inner = Sha256::new_with_prefix(pad(0x36));
    for part in parts {
        inner.update(part);
    }
    let mut outer = Sha256::new_with_prefix(pad(0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A shorter key of the RFC is the same as one with zeros after it.
    fn padded(key: &[u8]) -> [u8; 32] {
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        padded
    }

    #[test]
    fn test_vectors_of_rfc_4231() {
        let first = hmac_sha256(&padded(&[0x0b; 20]), &[b"Hi ", b"There"]);
        assert_eq!(
            hex(&first),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        let second = hmac_sha256(&padded(b"Jefe"), &[b"what do ya want for nothing?"]);
        assert_eq!(
            hex(&second),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        let third = hmac_sha256(&padded(&[0xaa; 20]), &[&[0xdd; 50]]);
        assert_eq!(
            hex(&third),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
        );
    }
}
