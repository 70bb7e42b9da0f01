//! The server on a socket, and clients of it.

use super::TestServer;
use axum::Router;
#[cfg(feature = "client")]
use leasehold_client::Client;
#[cfg(feature = "client")]
use leasehold_core::key::KeyScope;
use leasehold_server::{Drained, Server, Tls};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

impl TestServer {
    /// Serves an app on a free port, without the product's listener: the server's app, or one with more layers around it.
    pub async fn listen(app: Router) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    /// Serves on a free port as the product does, until `stop` is cancelled and calls under way have ended.
    pub async fn serve(&self, tls: Option<Tls>) -> (SocketAddr, JoinHandle<Drained>) {
        let server = Server::bind("127.0.0.1:0", tls).await.unwrap();
        let address = server.address();
        (address, tokio::spawn(server.serve(self.state.clone())))
    }

    /// A client with a key of this scope of the server at this address.
    #[cfg(feature = "client")]
    pub async fn client(&self, address: SocketAddr, scope: KeyScope) -> Client {
        let key = self.key(scope).await;
        Client::new(&format!("http://{address}"), &key).unwrap()
    }

    /// A client with the administrator's key of the server at this address.
    #[cfg(feature = "client")]
    pub fn admin_client(&self, address: SocketAddr) -> Client {
        Client::new(&format!("http://{address}"), &self.admin).unwrap()
    }
}
