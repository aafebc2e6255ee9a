//! Waits until an ingress has heard of an item: it reads the catalog twice a second.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use shared::domain::ItemId;

use crate::client::Client;

/// How soon it is asked again.
const POLL: Duration = Duration::from_millis(5);

/// False when it has not heard of the item within so long.
pub async fn hears_of(address: SocketAddr, item: &ItemId, within: Duration) -> bool {
    let mut client = Client::new(address);
    let until = Instant::now() + within;
    let path = format!("/v1/items/{item}");
    while !client.get(&path).await.is_ok_and(|response| response.status.is_success()) {
        if Instant::now() >= until {
            return false;
        }
        tokio::time::sleep(POLL).await;
    }
    true
}
