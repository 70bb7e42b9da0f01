//! API keys: the format of a secret and what its rights permit. Knows no HTTP and no storage, and generates no random numbers.

use crate::WorkspaceId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// What a key gives access to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyScope {
    /// The installation: everything.
    Admin,
    /// One workspace: its definitions, requests and executions.
    Workspace(WorkspaceId),
    /// The jobs of named queues.
    Worker {
        /// The queues.
        queues: Vec<String>,
    },
    /// The metrics for Prometheus.
    Metrics,
}

impl KeyScope {
    /// The kind's name: `admin`, `workspace`, `worker` or `metrics`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Workspace(_) => "workspace",
            Self::Worker { .. } => "worker",
            Self::Metrics => "metrics",
        }
    }

    /// Returns the workspace of a workspace key.
    pub const fn workspace(&self) -> Option<WorkspaceId> {
        match self {
            Self::Workspace(workspace) => Some(*workspace),
            Self::Admin | Self::Worker { .. } | Self::Metrics => None,
        }
    }

    /// Decides whether a key of this scope has the permission, apart from its access and its payloads. No other code decides it.
    pub fn authorize(&self, permission: &Permission<'_>) -> AccessDecision {
        match (self, permission) {
            (Self::Admin, _)
            | (Self::Workspace(_) | Self::Worker { .. }, Permission::AnyKey)
            | (Self::Worker { .. }, Permission::Jobs)
            | (Self::Workspace(_), Permission::Audit)
            | (Self::Metrics, Permission::Metrics) => AccessDecision::Allowed,
            (Self::Workspace(own), Permission::Workspace(requested)) => {
                AccessDecision::allowed_or_hidden(own == requested)
            }
            (Self::Worker { queues }, Permission::Queue(requested)) => {
                AccessDecision::allowed_or_hidden(queues.iter().any(|queue| queue == requested))
            }
            (
                Self::Workspace(_),
                Permission::Admin | Permission::Queue(_) | Permission::Jobs | Permission::Metrics,
            )
            | (
                Self::Worker { .. },
                Permission::Admin
                | Permission::Workspace(_)
                | Permission::Audit
                | Permission::Metrics,
            )
            | (
                Self::Metrics,
                Permission::AnyKey
                | Permission::Admin
                | Permission::Workspace(_)
                | Permission::Queue(_)
                | Permission::Jobs
                | Permission::Audit,
            ) => AccessDecision::Forbidden,
        }
    }
}

/// Whether a key may change what its scope gives access to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyAccess {
    /// It may read and change.
    #[default]
    Full,
    /// It may only read.
    Read,
}

/// Whether a key sees payloads: params, payloads, results, outputs, progress and error texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payloads {
    /// It sees them.
    #[default]
    Shown,
    /// Responses leave them out.
    Hidden,
}

/// Gives an enum its names in the database and in JSON.
macro_rules! named {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),*) => {
        impl $type {
            /// Returns its name in the database and in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl std::str::FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                match text {
                    $($name => Ok(Self::$variant),)*
                    _ => Err(UnknownName($what)),
                }
            }
        }
    };
}

named!(KeyAccess, "access of a key", Full = "full", Read = "read");
named!(
    Payloads,
    "payload visibility of a key",
    Shown = "shown",
    Hidden = "hidden"
);

/// A text that names no variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {0}")]
pub struct UnknownName(&'static str);

/// The rights of a key: scope × access × payloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRights {
    /// What it gives access to.
    pub scope: KeyScope,
    /// Whether it may change things.
    pub access: KeyAccess,
    /// Whether it sees payloads.
    pub payloads: Payloads,
}

impl KeyRights {
    /// Returns all rights of a scope.
    pub const fn full(scope: KeyScope) -> Self {
        Self {
            scope,
            access: KeyAccess::Full,
            payloads: Payloads::Shown,
        }
    }

    /// Decides whether a key with these rights may make a call. The scope decides first, so that a denial does not tell more about other
    /// workspaces than the scope permits.
    pub fn authorize(&self, permission: &Permission<'_>, needs: CallNeeds) -> AccessDecision {
        match self.scope.authorize(permission) {
            AccessDecision::Allowed if needs.changes && self.access == KeyAccess::Read => {
                AccessDecision::ReadOnly
            }
            AccessDecision::Allowed if needs.payloads && self.payloads == Payloads::Hidden => {
                AccessDecision::PayloadsHidden
            }
            decision => decision,
        }
    }

    /// Whether these rights include all of the others. A key must not create a key with more rights than its own.
    pub fn include(&self, other: &Self) -> bool {
        let scope = match (&self.scope, &other.scope) {
            (KeyScope::Admin, _) => true,
            (KeyScope::Worker { queues }, KeyScope::Worker { queues: others }) => {
                others.iter().all(|queue| queues.contains(queue))
            }
            (own, other) => own == other,
        };
        let access = self.access == KeyAccess::Full || other.access == KeyAccess::Read;
        let payloads = self.payloads == Payloads::Shown || other.payloads == Payloads::Hidden;
        scope && access && payloads
    }
}

/// What a call does beside reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallNeeds {
    /// It changes something.
    pub changes: bool,
    /// It gives access to payloads: claiming jobs returns them, and the graph of a published version receives and sends them.
    pub payloads: bool,
}

/// What a call requires of the caller's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission<'a> {
    /// A key of any kind, except a metrics key.
    AnyKey,
    /// An administrator's key.
    Admin,
    /// A key of this workspace.
    Workspace(WorkspaceId),
    /// A worker's key for this queue.
    Queue(&'a str),
    /// A worker's key for any queue; fencing tokens restrict the caller to its own leases.
    Jobs,
    /// The audit log: a workspace key reads the entries of its workspace.
    Audit,
    /// The metrics.
    Metrics,
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
    /// The call is denied because it changes something and the key may only read.
    ReadOnly,
    /// The call is denied because it gives access to payloads and the key does not see them.
    PayloadsHidden,
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
        if !matches!(kind, "admin" | "workspace" | "worker" | "metrics") {
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

    fn scopes() -> [KeyScope; 4] {
        [
            KeyScope::Admin,
            KeyScope::Workspace(Uuid::from_u128(1).into()),
            KeyScope::Worker {
                queues: vec!["emails".to_owned(), "bills".to_owned()],
            },
            KeyScope::Metrics,
        ]
    }

    fn all_rights() -> Vec<KeyRights> {
        let mut all = Vec::new();
        for scope in scopes() {
            for access in [KeyAccess::Full, KeyAccess::Read] {
                for payloads in [Payloads::Shown, Payloads::Hidden] {
                    all.push(KeyRights {
                        scope: scope.clone(),
                        access,
                        payloads,
                    });
                }
            }
        }
        all
    }

    #[test]
    fn each_scope_and_permission_has_its_decision() {
        use AccessDecision::{Allowed, Forbidden, Hidden};
        let own = Permission::Workspace(Uuid::from_u128(1).into());
        let other = Permission::Workspace(Uuid::from_u128(2).into());
        let bills = Permission::Queue("bills");
        let table = [
            (Permission::AnyKey, [Allowed, Allowed, Allowed, Forbidden]),
            (
                Permission::Admin,
                [Allowed, Forbidden, Forbidden, Forbidden],
            ),
            (own, [Allowed, Allowed, Forbidden, Forbidden]),
            (other, [Allowed, Hidden, Forbidden, Forbidden]),
            (bills, [Allowed, Forbidden, Allowed, Forbidden]),
            (
                Permission::Queue("Bills"),
                [Allowed, Forbidden, Hidden, Forbidden],
            ),
            (Permission::Jobs, [Allowed, Forbidden, Allowed, Forbidden]),
            (Permission::Audit, [Allowed, Allowed, Forbidden, Forbidden]),
            (
                Permission::Metrics,
                [Allowed, Forbidden, Forbidden, Allowed],
            ),
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
    fn read_access_and_hidden_payloads_deny_calls_that_the_scope_allows() {
        let (own, other) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let rights = |access, payloads| KeyRights {
            scope: KeyScope::Workspace(own),
            access,
            payloads,
        };
        let read = CallNeeds::default();
        let change = CallNeeds {
            changes: true,
            payloads: false,
        };
        let claim = CallNeeds {
            changes: true,
            payloads: true,
        };
        let full = rights(KeyAccess::Full, Payloads::Shown);
        let read_only = rights(KeyAccess::Read, Payloads::Shown);
        let hidden = rights(KeyAccess::Full, Payloads::Hidden);
        for (rights, needs, decision) in [
            (&full, read, AccessDecision::Allowed),
            (&full, claim, AccessDecision::Allowed),
            (&read_only, read, AccessDecision::Allowed),
            (&read_only, change, AccessDecision::ReadOnly),
            (&hidden, read, AccessDecision::Allowed),
            (&hidden, change, AccessDecision::Allowed),
            (&hidden, claim, AccessDecision::PayloadsHidden),
        ] {
            let got = rights.authorize(&Permission::Workspace(own), needs);
            assert_eq!(got, decision, "{rights:?} {needs:?}");
            let foreign = rights.authorize(&Permission::Workspace(other), needs);
            assert_eq!(foreign, AccessDecision::Hidden);
        }
    }

    #[test]
    fn rights_include_only_rights_that_permit_no_more() {
        let permissions = [
            Permission::AnyKey,
            Permission::Admin,
            Permission::Workspace(Uuid::from_u128(1).into()),
            Permission::Queue("emails"),
            Permission::Jobs,
            Permission::Audit,
            Permission::Metrics,
        ];
        let needs = [(false, false), (true, false), (true, true)];
        let allowed = |rights: &KeyRights, permission, (changes, payloads)| {
            let needs = CallNeeds { changes, payloads };
            rights.authorize(permission, needs) == AccessDecision::Allowed
        };
        for own in all_rights() {
            assert!(own.include(&own));
            for other in all_rights().iter().filter(|other| own.include(other)) {
                for permission in &permissions {
                    for need in needs {
                        let more =
                            allowed(other, permission, need) && !allowed(&own, permission, need);
                        assert!(!more, "{own:?} {other:?} {permission:?} {need:?}");
                    }
                }
                assert!(own.payloads == Payloads::Shown || other.payloads == Payloads::Hidden);
            }
        }
        let admin = KeyRights::full(KeyScope::Admin);
        assert!(all_rights().iter().all(|rights| admin.include(rights)));
    }

    #[test]
    fn names_parse_back() {
        for access in [KeyAccess::Full, KeyAccess::Read] {
            assert_eq!(access.as_str().parse(), Ok(access));
        }
        for payloads in [Payloads::Shown, Payloads::Hidden] {
            assert_eq!(payloads.as_str().parse(), Ok(payloads));
        }
        assert!("all".parse::<KeyAccess>().is_err());
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
