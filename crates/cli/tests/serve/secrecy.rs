//! What must not stand in a log, however much is logged.

use crate::database;
use crate::program::{self, Program};
use crate::site::Site;
use crate::temporal::Namespace;
use serde_json::json;

const PASSWORD: &str = "hush-hush-password";
const API_KEY: &str = "hush-hush-api-key";
const PAYLOAD: &str = "hush-hush-payload";

#[tokio::test(flavor = "multi_thread")]
async fn no_password_api_key_or_payload_is_logged_even_at_trace() {
    let database = database::fresh().await;
    let namespace = Namespace::fresh();
    // This server lets everybody in, so it takes any password; Temporal's takes any key.
    let url = database
        .url()
        .replace("postgres@", &format!("postgres:{PASSWORD}@"));
    assert!(url.contains(PASSWORD));
    let address = format!("http://{}", namespace.address());
    for format in ["text", "json"] {
        let mut serve = Program::new(&url, &address, &namespace.name)
            .set("temporal.api_key", API_KEY)
            .set("log.level", "trace")
            .set("log.format", format)
            .start();
        let site = Site::new(database::store(database.url()), 10).await;
        let params = json!({"do": "wait", "card": PAYLOAD});
        let request = site.dispatched(site.enqueue(params).await).await;
        namespace.terminate(request.execution.unwrap(), "enough");
        site.until("ended", |counts| counts.failed == 1).await;
        program::stop(&mut serve);

        let leaks: Vec<String> = serve
            .lines()
            .into_iter()
            .filter(|line| line.contains("hush"))
            .map(|line| line.chars().take(300).collect())
            .collect();
        assert!(
            leaks.is_empty(),
            "{} lines: {:#?}",
            leaks.len(),
            &leaks[..leaks.len().min(5)]
        );
        assert!(program::lines(&serve, "Dispatched execution") > 0);
    }
}
