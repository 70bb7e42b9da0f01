//! API keys: the format of a secret and what its scope permits. Knows no HTTP and no storage, and generates no random numbers.

use crate::WorkspaceId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// What a key gives access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// Everything.
    Admin,
    /// One workspace: its definitions, requests and executions.
    Workspace(WorkspaceId),
    /// The jobs of named queues.
    Worker {
        /// The queues.
        queues: Vec<String>,
    },
}

impl KeyScope {
    /// The kind's name: `admin`, `workspace` or `worker`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Workspace(_) => "workspace",
            Self::Worker { .. } => "worker",
        }
    }

    /// Decides whether a key of this scope has the permission. No other code decides access.
    pub fn authorize(&self, permission: &Permission<'_>) -> AccessDecision {
        match (self, permission) {
            (Self::Admin, _) | (_, Permission::AnyKey) => AccessDecision::Allowed,
            (Self::Workspace(own), Permission::Workspace(requested)) => {
                AccessDecision::allowed_or_hidden(own == requested)
            }
            (Self::Worker { queues }, Permission::Queue(requested)) => {
                AccessDecision::allowed_or_hidden(queues.iter().any(|queue| queue == requested))
            }
            (Self::Worker { .. }, Permission::Jobs) => AccessDecision::Allowed,
            (Self::Workspace(_), Permission::Admin | Permission::Queue(_) | Permission::Jobs)
            | (Self::Worker { .. }, Permission::Admin | Permission::Workspace(_)) => {
                AccessDecision::Forbidden
            }
        }
    }
}

/// What a call requires of the caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission<'a> {
    /// A key of any kind.
    AnyKey,
    /// An administrator's key.
    Admin,
    /// A key of this workspace.
    Workspace(WorkspaceId),
    /// A worker's key for this queue.
    Queue(&'a str),
    /// A worker's key for any queue; fencing tokens restrict the caller to its own leases.
    Jobs,
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessDecision {
    /// The call may proceed.
    Allowed,
    /// The call is denied, and the resource is reported as not found.
    Hidden,
    /// The call is denied.
    Forbidden,
}

impl AccessDecision {
    fn allowed_or_hidden(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Hidden }
    }
}

/// The text of a key, shown once when the key is created. `Debug` does not print it, so it cannot reach a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

const PREFIX: &str = "lh_";
const RANDOM_BYTES: usize = 32;
const CHECK_BYTES: usize = 4;

impl Secret {
    /// Formats a key of this scope: `lh_<kind>_`, then the random bytes and a checksum in base64.
    pub fn new(scope: &KeyScope, random: &[u8; RANDOM_BYTES]) -> Self {
        let mut bytes = random.to_vec();
        bytes.extend(checksum(random));
        Self(format!(
            "{PREFIX}{}_{}",
            scope.kind(),
            URL_SAFE_NO_PAD.encode(bytes)
        ))
    }

    /// Parses a key by format and checksum; rejects other text without a lookup.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, body) = text.strip_prefix(PREFIX)?.split_once('_')?;
        if !matches!(kind, "admin" | "workspace" | "worker") {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(body).ok()?;
        let (random, check) = bytes.split_at_checked(RANDOM_BYTES)?;
        (check == checksum(random)).then(|| Self(text.to_owned()))
    }

    /// Returns the SHA-256 hash, which is all that a store keeps of a key.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Returns the text of the key.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

fn checksum(random: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = Sha256::digest(random);
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use uuid::Uuid;

    fn scopes() -> [KeyScope; 3] {
        [
            KeyScope::Admin,
            KeyScope::Workspace(Uuid::from_u128(1).into()),
            KeyScope::Worker {
                queues: vec!["emails".to_owned(), "bills".to_owned()],
            },
        ]
    }

    #[test]
    fn each_scope_and_permission_has_its_decision() {
        use AccessDecision::{Allowed, Forbidden, Hidden};
        let own = Permission::Workspace(Uuid::from_u128(1).into());
        let other = Permission::Workspace(Uuid::from_u128(2).into());
        let table = [
            (Permission::AnyKey, [Allowed, Allowed, Allowed]),
            (Permission::Admin, [Allowed, Forbidden, Forbidden]),
            (own, [Allowed, Allowed, Forbidden]),
            (other, [Allowed, Hidden, Forbidden]),
            (Permission::Queue("bills"), [Allowed, Forbidden, Allowed]),
            (Permission::Queue("Bills"), [Allowed, Forbidden, Hidden]),
            (Permission::Jobs, [Allowed, Forbidden, Allowed]),
        ];
        for (permission, decisions) in table {
            for (scope, decision) in scopes().iter().zip(decisions) {
                assert_eq!(
                    scope.authorize(&permission),
                    decision,
                    "{scope:?} {permission:?}"
                );
            }
        }
    }

    #[test]
    fn secret_starts_with_its_kind_and_parses_back() {
        for scope in scopes() {
            let secret = Secret::new(&scope, &[7; 32]);
            let start = format!("lh_{}_", scope.kind());
            assert!(secret.reveal().starts_with(&start), "{}", secret.reveal());
            assert_eq!(Secret::parse(secret.reveal()), Some(secret));
        }
    }

    #[test]
    fn text_without_valid_checksum_is_rejected() {
        let good = Secret::new(&KeyScope::Admin, &[7; 32]);
        let good = good.reveal();
        let mut mistyped = good.to_owned();
        mistyped.replace_range(20..21, if &good[20..21] == "A" { "B" } else { "A" });
        for text in [
            "",
            "lh_",
            "lh_admin_",
            "admin",
            &good[1..],
            &good[..good.len() - 1],
            &format!("{good}A"),
            &mistyped,
            &good.replace("admin", "root"),
            "lh_admin_ü",
        ] {
            assert_eq!(Secret::parse(text), None, "{text}");
        }
    }

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        let secret = Secret::new(&KeyScope::Admin, &[7; 32]);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_ne!(
            secret.hash(),
            Secret::new(&KeyScope::Admin, &[8; 32]).hash()
        );
    }
}
