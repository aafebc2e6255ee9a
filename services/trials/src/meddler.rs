//! Somebody at the broker who asks for stock back before the ledger has decided, as a compensation
//! does that overtakes its order.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use shared::contract::{Compensation, encode_compensation};
use shared::domain::{EnvironmentId, HoldStanding, ItemId, Quantity, Reservation, UnixMillis};
use shared::queue::{Outgoing, Publisher, Route};
use shared::stock::Stock;
use tokio::time::sleep;

use crate::auditor::Purchase;
use crate::line::Line;
use crate::messages::request_id;

/// A hold lives for some milliseconds.
const PAUSE: Duration = Duration::from_millis(1);

pub struct Meddler {
    stock: Stock,
    publisher: Publisher,
    environment: EnvironmentId,
    item: ItemId,
    purchases: Vec<Purchase>,
    /// What was asked for back, whether or not anybody heard it.
    asked_back: Mutex<HashSet<Purchase>>,
}

impl Meddler {
    pub async fn of(line: &Line, item: &ItemId, purchases: Vec<Purchase>) -> Self {
        let (rabbitmq, namespace) = (&line.config.rabbitmq, &line.config.namespace);
        let environment = line.ledger.environment().await.expect("an environment");
        Self {
            stock: line.stock.clone(),
            publisher: Publisher::connect(rabbitmq, namespace, "trial").expect("a publisher"),
            environment,
            item: item.clone(),
            purchases,
            asked_back: Mutex::default(),
        }
    }

    /// Waits for holds and asks for their stock back, until there have been so many.
    pub async fn ask_back(&self, most: usize) {
        while self.asked_back().len() < most {
            for purchase in &self.purchases {
                if let Some(reservation) = self.held(purchase).await {
                    self.note(purchase);
                    let reason = "trial".parse().expect("a reason");
                    let compensation = Compensation::of(&reservation, self.environment, reason);
                    let body = encode_compensation(&compensation);
                    // Whether it arrives or not, the law holds.
                    let message =
                        Outgoing { route: Route::Compensations, headers: Vec::new(), body };
                    self.publisher.publish(message).await;
                }
            }
            sleep(PAUSE).await;
        }
    }

    /// Every purchase that may have been given back.
    pub fn asked_back(&self) -> HashSet<Purchase> {
        self.asked_back.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, purchase: &Purchase) {
        let mut asked_back = self.asked_back.lock().unwrap_or_else(PoisonError::into_inner);
        asked_back.insert(purchase.clone());
    }

    /// The reservation of a purchase that is not settled. `None` also while Redis is away.
    async fn held(&self, purchase: &Purchase) -> Option<Reservation> {
        let request_id = request_id(&self.item, &purchase.buyer, &purchase.key);
        let buyer = purchase.buyer.parse().expect("a buyer");
        let hold = self.stock.find_hold(&self.item, &buyer, request_id).await.ok()?.hold?;
        (hold.standing == HoldStanding::Held).then(|| Reservation {
            request_id,
            reservation_id: hold.reservation_id,
            item: self.item.clone(),
            epoch: 1,
            buyer,
            quantity: Quantity::new(purchase.quantity.into()).expect("a quantity"),
            reserved_at: UnixMillis::from(std::time::SystemTime::now()),
        })
    }
}
