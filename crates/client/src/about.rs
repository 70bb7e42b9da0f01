//! The server itself: its health, its instances and the locks they hold.

use crate::client::Client;
use crate::error::Result;
use leasehold_api::doctor::{Finding, Findings};
use leasehold_api::instance::{Instance, Instances, Lock, Locks};
use leasehold_api::overview::Overview;

/// # The server
impl Client {
    /// Whether the server can do its work. Not tried again: the answer is about now.
    ///
    /// # Errors
    /// If it cannot, or the call does not succeed.
    pub async fn ready(&self) -> Result<()> {
        self.get(&["readyz"]).repeatable(false).done().await
    }

    /// Whether the server serves at all. Not tried again: the answer is about now.
    ///
    /// # Errors
    /// If it does not, or the call does not succeed.
    pub async fn healthy(&self) -> Result<()> {
        self.get(&["healthz"]).repeatable(false).done().await
    }

    /// What the server measures, as Prometheus reads it.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn metrics(&self) -> Result<String> {
        let text = self.get(&["metrics"]).text().await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// The description of the API, OpenAPI 3.1 as JSON text.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn openapi(&self) -> Result<String> {
        let text = self.get(&["openapi.json"]).text().await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// What goes on in the whole server now.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn overview(&self) -> Result<Overview> {
        self.get(&["v1", "overview"]).json().await
    }

    /// What is wrong with the installation, as far as the server can tell.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn doctor(&self) -> Result<Vec<Finding>> {
        let answer: Findings = self.get(&["v1", "doctor"]).json().await?;
        Ok(answer.findings)
    }

    /// Every named lock.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn lock_list(&self) -> Result<Vec<Lock>> {
        let answer: Locks = self.get(&["v1", "locks"]).json().await?;
        Ok(answer.locks)
    }

    /// Every instance that serves the store.
    ///
    /// # Errors
    /// If the call does not succeed.
    pub async fn instance_list(&self) -> Result<Vec<Instance>> {
        let answer: Instances = self.get(&["v1", "instances"]).json().await?;
        Ok(answer.instances)
    }
}
