//! Keys: what a secret looks like, and what its holder may do. Knows no HTTP, keeps nothing and makes no random numbers.

use crate::WorkspaceId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// What a key opens.
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

    /// Whether its holder may do what needs this. The only place that decides it.
    pub fn may(&self, need: &Need<'_>) -> Verdict {
        match (self, need) {
            (Self::Admin, _) | (_, Need::AnyKey) => Verdict::Allowed,
            (Self::Workspace(own), Need::Workspace(asked)) => {
                Verdict::allowed_or_hidden(own == asked)
            }
            (Self::Worker { queues }, Need::Queue(asked)) => {
                Verdict::allowed_or_hidden(queues.iter().any(|queue| queue == asked))
            }
            (Self::Worker { .. }, Need::Jobs) => Verdict::Allowed,
            (Self::Workspace(_), Need::Admin | Need::Queue(_) | Need::Jobs)
            | (Self::Worker { .. }, Need::Admin | Need::Workspace(_)) => Verdict::Forbidden,
        }
    }
}

/// What something needs of whoever asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need<'a> {
    /// A key of any kind.
    AnyKey,
    /// An administrator.
    Admin,
    /// Somebody of this workspace.
    Workspace(WorkspaceId),
    /// A worker of this queue.
    Queue(&'a str),
    /// A worker of any queue; what it touches is guarded by its leases.
    Jobs,
}

/// Whether it may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may not, and what was asked for is as if it did not exist.
    Hidden,
    /// It may not.
    Forbidden,
}

impl Verdict {
    fn allowed_or_hidden(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Hidden }
    }
}

/// A key's text, shown once to whoever it was made for. Never logged: it does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

const PREFIX: &str = "lh_";
const RANDOM_BYTES: usize = 32;
const CHECK_BYTES: usize = 4;

impl Secret {
    /// The text of a key of this kind: `lh_<kind>_` and the random bytes with a checksum behind them.
    pub fn new(scope: &KeyScope, random: &[u8; RANDOM_BYTES]) -> Self {
        let mut bytes = random.to_vec();
        bytes.extend(checksum(random));
        Self(format!(
            "{PREFIX}{}_{}",
            scope.kind(),
            URL_SAFE_NO_PAD.encode(bytes)
        ))
    }

    /// Takes a text that could be a key. What is not one is refused without looking anywhere.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, body) = text.strip_prefix(PREFIX)?.split_once('_')?;
        if !matches!(kind, "admin" | "workspace" | "worker") {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(body).ok()?;
        let (random, check) = bytes.split_at_checked(RANDOM_BYTES)?;
        (check == checksum(random)).then(|| Self(text.to_owned()))
    }

    /// What is kept of it. The text cannot be found from it.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// The text itself.
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
    fn every_kind_of_key_and_every_need_has_its_verdict() {
        use Verdict::{Allowed, Forbidden, Hidden};
        let own = Need::Workspace(Uuid::from_u128(1).into());
        let other = Need::Workspace(Uuid::from_u128(2).into());
        let table = [
            (Need::AnyKey, [Allowed, Allowed, Allowed]),
            (Need::Admin, [Allowed, Forbidden, Forbidden]),
            (own, [Allowed, Allowed, Forbidden]),
            (other, [Allowed, Hidden, Forbidden]),
            (Need::Queue("bills"), [Allowed, Forbidden, Allowed]),
            (Need::Queue("Bills"), [Allowed, Forbidden, Hidden]),
            (Need::Jobs, [Allowed, Forbidden, Allowed]),
        ];
        for (need, verdicts) in table {
            for (scope, verdict) in scopes().iter().zip(verdicts) {
                assert_eq!(scope.may(&need), verdict, "{scope:?} {need:?}");
            }
        }
    }

    #[test]
    fn a_secret_is_read_back_and_says_its_kind() {
        for scope in scopes() {
            let secret = Secret::new(&scope, &[7; 32]);
            let start = format!("lh_{}_", scope.kind());
            assert!(secret.reveal().starts_with(&start), "{}", secret.reveal());
            assert_eq!(Secret::parse(secret.reveal()), Some(secret));
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_looking_it_up() {
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
    fn a_secret_shows_itself_only_when_asked() {
        let secret = Secret::new(&KeyScope::Admin, &[7; 32]);
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_ne!(
            secret.hash(),
            Secret::new(&KeyScope::Admin, &[8; 32]).hash()
        );
    }
}
