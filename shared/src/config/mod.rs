//! What can be set, and where it comes from: defaults, then `lastunit.toml`, then `LASTUNIT_*`,
//! then flags; the later wins.

mod backend_url;
pub mod limits;
mod load;
mod settings;

pub use backend_url::{BackendUrl, InvalidUrl};
pub use load::{ConfigError, Sources, load};
pub use settings::{
    Config, DeadLetters, Http, Ledger, Log, LogFormat, Metrics, RabbitMq, Redis, SETTINGS, Setting,
};
