//! What kind of Redis this is.

use super::{Stock, StockError};

/// What the server tells about itself; a managed one may keep some of it to itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Server {
    /// `host:port`.
    pub address: String,
    /// For example `7.0.15`.
    pub version: Option<String>,
    /// What it does when it is full, for example `noeviction`.
    pub maxmemory_policy: Option<String>,
    /// Whether it is a node of a cluster.
    pub is_cluster: Option<bool>,
}

impl Server {
    /// The first number of the version.
    pub fn major_version(&self) -> Option<u32> {
        self.version.as_ref()?.split('.').next()?.parse().ok()
    }
}

impl Stock {
    /// Asks every server that keeps stock about itself, by `INFO`, which also answers where `CONFIG`
    /// is forbidden.
    pub async fn servers(&self) -> Result<Vec<Server>, StockError> {
        let told = self.connection.info("default").await?;
        Ok(told.into_iter().map(|(address, info)| read(address, info.as_deref())).collect())
    }
}

fn read(address: String, info: Option<&str>) -> Server {
    let field = |name| info.and_then(|info| field(info, name));
    Server {
        address,
        version: field("redis_version"),
        maxmemory_policy: field("maxmemory_policy"),
        is_cluster: field("cluster_enabled").map(|enabled| enabled == "1"),
    }
}

/// The value in a line `name:value`.
fn field(info: &str, name: &str) -> Option<String> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let info = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nempty:\r\n";
        assert_eq!(field(info, "redis_version").as_deref(), Some("7.0.15"));
        assert_eq!(field(info, "redis"), None);
        assert_eq!(field(info, "empty"), None);
        let of = |version: Option<&str>| {
            Server { version: version.map(str::to_owned), ..Server::default() }.major_version()
        };
        assert_eq!((of(Some("7.0.15")), of(Some("x")), of(None)), (Some(7), None, None));
    }
}
