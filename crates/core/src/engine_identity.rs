//! What tells one engine's executions from those of another. Pure.

use std::fmt;

/// The identity of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineIdentity {
    /// The kind of engine: `temporal` or `embedded`.
    pub kind: String,
    /// The name of the namespace; empty if the engine has none.
    pub namespace: String,
    /// The id of the namespace, which a namespace of the same name in another Temporal does not have; empty if the engine has none.
    pub namespace_id: String,
    /// The id of the cluster that answered; empty if the engine has none, or does not reveal it.
    pub cluster_id: String,
}

impl EngineIdentity {
    /// Returns the identity of an engine that keeps its executions in the store.
    pub fn of_kind(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            namespace: String::new(),
            namespace_id: String::new(),
            cluster_id: String::new(),
        }
    }

    /// Whether both have the same executions. The cluster does not matter: a namespace that is replicated between clusters has the same id in each.
    pub fn has_same_executions(&self, other: &Self) -> bool {
        self.kind == other.kind && self.namespace_id == other.namespace_id
    }
}

impl fmt::Display for EngineIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            namespace,
            namespace_id,
            cluster_id,
        } = self;
        if namespace_id.is_empty() {
            return write!(f, "the {kind} engine");
        }
        write!(f, "{kind} namespace {namespace} with id {namespace_id}")?;
        if cluster_id.is_empty() {
            return Ok(());
        }
        write!(f, " in cluster {cluster_id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporal(namespace: &str, namespace_id: &str, cluster_id: &str) -> EngineIdentity {
        EngineIdentity {
            kind: "temporal".to_owned(),
            namespace: namespace.to_owned(),
            namespace_id: namespace_id.to_owned(),
            cluster_id: cluster_id.to_owned(),
        }
    }

    #[test]
    fn id_of_the_namespace_decides_and_not_its_name_or_cluster() {
        let orders = temporal("orders", "1", "a");
        assert!(orders.has_same_executions(&temporal("orders", "1", "b")));
        assert!(!orders.has_same_executions(&temporal("orders", "2", "a")));
        let embedded = EngineIdentity::of_kind("embedded");
        assert!(embedded.has_same_executions(&embedded.clone()));
        assert!(!embedded.has_same_executions(&orders));
    }

    #[test]
    fn text_names_what_differs() {
        let orders = temporal("orders", "1", "a");
        let text = "temporal namespace orders with id 1 in cluster a";
        assert_eq!(orders.to_string(), text);
        let embedded = EngineIdentity::of_kind("embedded");
        assert_eq!(embedded.to_string(), "the embedded engine");
    }
}
