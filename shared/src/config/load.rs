//! Puts the layers of configuration on top of each other.

use std::path::{Path, PathBuf};

use super::settings::{Config, SETTINGS};

/// Where settings come from, besides the defaults.
#[derive(Debug, Default)]
pub struct Sources {
    /// The file to read; it must exist. `None` reads `lastunit.toml` here, if there is one.
    pub file: Option<PathBuf>,
    /// Environment variables; those whose name begins with `LASTUNIT_` count.
    pub environment: Vec<(String, String)>,
    /// Flags, by the path of their setting.
    pub flags: Vec<(&'static str, String)>,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot use the configuration: {0}")]
    Invalid(#[from] config::ConfigError),
    #[error(
        "the environment variable {variable} sets nothing; `lastunit config --reference` lists what can be set"
    )]
    UnknownVariable { variable: String },
    #[error("cannot use the configuration: {0}")]
    Contradiction(String),
}

/// Variables that begin like a setting: the file to read, and the stack that tests run against.
const NOT_SETTINGS: &[&str] = &["LASTUNIT_CONFIG", "LASTUNIT_STACK"];

/// Loads the effective settings.
pub fn load(sources: Sources) -> Result<Config, ConfigError> {
    let mut layers = config::Config::builder();
    for setting in SETTINGS {
        layers = layers.set_default(setting.path, setting.default)?;
    }
    layers = layers.add_source(match sources.file {
        Some(file) => config::File::from(file),
        None => config::File::from(Path::new("lastunit.toml")).required(false),
    });
    for (variable, value) in sources.environment {
        if !variable.starts_with("LASTUNIT_") || NOT_SETTINGS.contains(&variable.as_str()) {
            continue;
        }
        let setting = SETTINGS.iter().find(|setting| setting.variable() == variable);
        let setting = setting.ok_or(ConfigError::UnknownVariable { variable })?;
        layers = layers.set_override(setting.path, value)?;
    }
    for (path, value) in sources.flags {
        layers = layers.set_override(path, value)?;
    }
    let config: Config = layers.build()?.try_deserialize()?;
    match config.redis.contradiction() {
        Some(contradiction) => Err(ConfigError::Contradiction(contradiction)),
        None => Ok(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn flags_win_over_the_environment_which_wins_over_the_defaults() {
        let sources = Sources {
            environment: environment(&[
                ("LASTUNIT_NAMESPACE", "from-environment"),
                ("LASTUNIT_RABBITMQ_PARTITIONS", "7"),
                ("PATH", "ignored"),
            ]),
            flags: vec![("namespace", "from-flag".to_owned())],
            ..Sources::default()
        };
        let config = load(sources).expect("good settings");
        assert_eq!(config.namespace.as_str(), "from-flag");
        assert_eq!(config.rabbitmq.partitions, 7);
        assert_eq!(config.ledger.connections, 4);
    }

    #[test]
    fn a_misspelt_variable_is_an_error() {
        let sources = Sources {
            environment: environment(&[("LASTUNIT_REDIS_URI", "x")]),
            ..Sources::default()
        };
        assert!(matches!(load(sources), Err(ConfigError::UnknownVariable { .. })));
    }

    #[test]
    fn a_value_out_of_range_names_its_setting() {
        for (path, value) in [
            ("rabbitmq.partitions", "0"),
            ("rabbitmq.partitions", "65"),
            ("ledger.connections", "many"),
            ("namespace", "Shop"),
            ("redis.url", "nowhere"),
            ("redis.url", "redis://one:7000,redis://"),
            ("redis.mode", "sentinel"),
            ("http.listen", "8080"),
            ("metrics.listen", "9090"),
            ("log.format", "xml"),
        ] {
            let sources = Sources { flags: vec![(path, value.to_owned())], ..Sources::default() };
            let error = load(sources).expect_err(path).to_string();
            assert!(error.contains(path), "{error}");
        }
    }

    #[test]
    fn nodes_that_cannot_be_one_redis_are_refused() {
        let loaded = |mode: &str, url: &str| {
            let flags = vec![("redis.mode", mode.to_owned()), ("redis.url", url.to_owned())];
            load(Sources { flags, ..Sources::default() }).map_err(|error| error.to_string())
        };
        for url in ["redis://:hush@a:7000", "redis://:hush@a:7000/0", "redis://a, redis://b/"] {
            loaded("cluster", url).unwrap_or_else(|error| panic!("{url}: {error}"));
        }
        for (mode, url, what) in [
            ("single", "redis://a,redis://b", "redis.mode"),
            ("cluster", "redis://:hush@a,redis://:hush-hush@b", "same"),
            ("cluster", "redis://a,rediss://b", "same"),
            ("cluster", "redis://a,redis://b/3", "database"),
        ] {
            let error = loaded(mode, url).expect_err(url);
            assert!(error.contains(what) && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn metrics_are_listened_for_only_when_it_is_said_where() {
        let at = |value: &str| {
            let flags = vec![("metrics.listen", value.to_owned())];
            load(Sources { flags, ..Sources::default() }).expect("good settings").metrics.listen
        };
        assert_eq!(load(Sources::default()).expect("the defaults").metrics.listen, None);
        assert_eq!(at(""), None);
        assert_eq!(at("127.0.0.1:9090"), Some(([127, 0, 0, 1], 9090).into()));
    }

    #[test]
    fn every_setting_is_shown() {
        let config = load(Sources::default()).expect("the defaults");
        assert_eq!(config.shown().len(), SETTINGS.len());
    }
}
