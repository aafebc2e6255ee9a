//! What can be set, and where it comes from: defaults, then `lastunit.toml`, then `LASTUNIT_*`,
//! then flags; the later wins.

mod backend_url;
pub mod limits;
mod load;
mod node_urls;
mod settings;

pub use backend_url::{BackendUrl, InvalidUrl};
pub use load::{ConfigError, Sources, load};
pub use node_urls::NodeUrls;
pub use settings::{
    Config, DeadLetters, Http, Ledger, Log, LogFormat, Metrics, RabbitMq, Redis, RedisMode,
    SETTINGS, Setting,
};
