//! The server on a socket, and clients of it.

use super::TestServer;
use axum::Router;
#[cfg(feature = "client")]
use leasehold_client::Client;
#[cfg(feature = "client")]
use leasehold_core::key::KeyScope;
use leasehold_server::{DrainReport, Server, Tls};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

impl TestServer {
    /// Serves an app on a free port without the product's listener; the app may have additional layers.
    pub async fn listen(app: Router) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    /// Serves on a free port with the product's listener, until `stop` is cancelled and open calls have ended.
    pub async fn serve(&self, tls: Option<Tls>) -> (SocketAddr, JoinHandle<DrainReport>) {
        let server = Server::bind("127.0.0.1:0", tls).await.unwrap();
        let address = server.address();
        (address, tokio::spawn(server.serve(self.state.clone())))
    }

    /// Creates a key of this scope and a client of the server at this address.
    #[cfg(feature = "client")]
    pub async fn client(&self, address: SocketAddr, scope: KeyScope) -> Client {
        let key = self.key(scope).await;
        Client::new(&format!("http://{address}"), &key).unwrap()
    }

    /// Creates a client with the administrator key of the server at this address.
    #[cfg(feature = "client")]
    pub fn admin_client(&self, address: SocketAddr) -> Client {
        Client::new(&format!("http://{address}"), &self.admin).unwrap()
    }
}
