//! What a process of its own is told of the deployment in which it works.

use std::process::Command;

use shared::config::Config;

/// Tells it these backends, and nothing of this shell's settings.
pub fn tell_settings(command: &mut Command, config: &Config) {
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("LASTUNIT_")) {
        command.env_remove(name);
    }
    command
        .env("LASTUNIT_NAMESPACE", config.namespace.as_str())
        .env("LASTUNIT_REDIS_URL", config.redis.url.expose())
        .env("LASTUNIT_RABBITMQ_URL", config.rabbitmq.url.expose())
        .env("LASTUNIT_RABBITMQ_PARTITIONS", config.rabbitmq.partitions.to_string())
        .env("LASTUNIT_LEDGER_URL", config.ledger.url.expose());
}
