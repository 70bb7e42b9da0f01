//! Identifiers as distinct types, so that a request id cannot be passed as an execution id. Does not generate ids; the store crate does.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

id!(
    /// A tenant.
    WorkspaceId
);
id!(
    /// A workflow that a workspace owns.
    DefinitionId
);
id!(
    /// One immutable published form of a definition.
    VersionId
);
id!(
    /// One row of the execution queue.
    RequestId
);
id!(
    /// One run of a version in the engine.
    ExecutionId
);
id!(
    /// An API key.
    KeyId
);
id!(
    /// An entry of the audit log.
    AuditId
);
