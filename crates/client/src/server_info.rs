//! Calls about the server: health, metrics, instances and locks.

use crate::client::Client;
use crate::error::Result;
use leasehold_api::doctor::{Finding, Findings};
use leasehold_api::instance::{Instance, Instances, Lock, Locks};
use leasehold_api::overview::Overview;

/// # The server
impl Client {
    /// Checks readiness. Does not retry: the answer is about now.
    ///
    /// # Errors
    /// Fails if the server is not ready, or the call fails.
    pub async fn ready(&self) -> Result<()> {
        self.get(&["readyz"]).repeatable(false).done().await
    }

    /// Checks liveness. Does not retry: the answer is about now.
    ///
    /// # Errors
    /// Fails if the server is not healthy, or the call fails.
    pub async fn healthy(&self) -> Result<()> {
        self.get(&["healthz"]).repeatable(false).done().await
    }

    /// Returns the metrics in Prometheus's text format.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn metrics(&self) -> Result<String> {
        let text = self.get(&["metrics"]).text().await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the OpenAPI 3.1 description of the API, as JSON.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn openapi(&self) -> Result<String> {
        let text = self.get(&["openapi.json"]).text().await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the current activity of the server.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn overview(&self) -> Result<Overview> {
        self.get(&["v1", "overview"]).json().await
    }

    /// Returns the server's findings about the installation.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn doctor(&self) -> Result<Vec<Finding>> {
        let answer: Findings = self.get(&["v1", "doctor"]).json().await?;
        Ok(answer.findings)
    }

    /// Lists the named locks.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn lock_list(&self) -> Result<Vec<Lock>> {
        let answer: Locks = self.get(&["v1", "locks"]).json().await?;
        Ok(answer.locks)
    }

    /// Lists the instances of the store.
    ///
    /// # Errors
    /// Fails if the call fails.
    pub async fn instance_list(&self) -> Result<Vec<Instance>> {
        let answer: Instances = self.get(&["v1", "instances"]).json().await?;
        Ok(answer.instances)
    }
}
