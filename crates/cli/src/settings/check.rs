//! Checks settings against each other, after each one is valid alone.

use super::source::{Origins, SettingProblem};
use super::{PoolerKind, Settings};

/// The invalid setting, the related settings, and the rule.
type Violation = (&'static str, &'static [&'static str], String);

impl Settings {
    /// Returns every violated rule.
    pub(super) fn check(&self, origins: &Origins) -> Vec<SettingProblem> {
        let wrong = [
            self.start_timeout(),
            self.forget_after(),
            self.bodies(),
            pair(
                (
                    "server.tls_certificate_file",
                    self.server.tls_certificate_file.is_some(),
                ),
                ("server.tls_key_file", self.server.tls_key_file.is_some()),
            ),
            pair(
                (
                    "temporal.tls_certificate_file",
                    self.temporal.tls_certificate_file.is_some(),
                ),
                (
                    "temporal.tls_key_file",
                    self.temporal.tls_key_file.is_some(),
                ),
            ),
            self.temporal_address(),
            self.prepared_statements(),
        ];
        let wrong = wrong.into_iter().flatten();
        wrong
            .map(|(key, others, message)| SettingProblem::about(origins, key, others, message))
            .collect()
    }

    fn start_timeout(&self) -> Option<Violation> {
        let start = self.dispatch.start_timeout;
        let connect = self.temporal.connect_timeout;
        let call = self.temporal.call_timeout;
        (start.0 <= connect.0 + call.0).then(|| {
            let message = format!(
                "must be longer than temporal.connect_timeout ({connect}) plus temporal.call_timeout ({call}), is {start}"
            );
            let others: &[_] = &["temporal.call_timeout", "temporal.connect_timeout"];
            ("dispatch.start_timeout", others, message)
        })
    }

    fn forget_after(&self) -> Option<Violation> {
        let (interval, forget) = (self.instance.interval, self.instance.forget_after);
        (forget.0 <= interval.0).then(|| {
            let message =
                format!("must be longer than instance.interval ({interval}), is {forget}");
            let others: &[_] = &["instance.interval"];
            ("instance.forget_after", others, message)
        })
    }

    /// The largest allowed batch must fit.
    fn bodies(&self) -> Option<Violation> {
        let (batch, all) = (self.server.batch_max_bytes, self.server.bodies_max_bytes);
        (all < batch).then(|| {
            let message = format!("must be at least server.batch_max_bytes ({batch}), is {all}");
            let others: &[_] = &["server.batch_max_bytes"];
            ("server.bodies_max_bytes", others, message)
        })
    }

    fn prepared_statements(&self) -> Option<Violation> {
        let store = &self.store;
        (!store.prepared_statements && store.pooler == PoolerKind::None).then(|| {
            let message = "must be true if store.pooler is \"none\", is false; set store.pooler = \"transaction\" behind a pooler in transaction mode";
            let others: &[_] = &["store.pooler"];
            ("store.prepared_statements", others, message.to_owned())
        })
    }

    fn temporal_address(&self) -> Option<Violation> {
        let temporal = &self.temporal;
        let tls = temporal.tls
            || temporal.tls_ca_file.is_some()
            || temporal.tls_domain.is_some()
            || temporal.tls_certificate_file.is_some();
        (tls && temporal.address.starts_with("http://")).then(|| {
            let message = "must be https://… or host:port if TLS is set, is an http:// address";
            let others: &[_] = &["temporal.tls"];
            ("temporal.address", others, message.to_owned())
        })
    }
}

/// A certificate and its key must be set together.
fn pair(certificate: (&'static str, bool), key: (&'static str, bool)) -> Option<Violation> {
    let (alone, other) = match (certificate, key) {
        ((certificate, true), (key, false)) => (certificate, key),
        ((certificate, false), (key, true)) => (key, certificate),
        _ => return None,
    };
    let message = format!("must be set together with {other}");
    Some((alone, &[], message))
}
