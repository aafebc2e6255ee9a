//! The address of a backend, password included, that never shows its password.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use url::Url;

/// A URL that prints as `scheme://user:***@host:port/path`.
#[derive(Clone, PartialEq, Eq)]
pub struct BackendUrl(Url);

/// A text that is not the URL of a backend. It may hold a password, so it is not repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a URL of the form scheme://user:password@host:port/path ({0})")]
pub struct InvalidUrl(&'static str);

impl BackendUrl {
    /// The whole URL, password included: for the client library only, never for a log.
    pub fn expose(&self) -> &str {
        self.0.as_str()
    }

    /// The same backend under another path: another database, another virtual host.
    pub fn with_path(&self, path: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(path);
        Self(url)
    }

    /// The same credentials at another address, such as a proxy's.
    pub fn with_address(&self, address: SocketAddr) -> Self {
        let mut url = self.0.clone();
        // Both can only fail for URLs without a host, and this one has one.
        let _ = url.set_ip_host(address.ip());
        let _ = url.set_port(Some(address.port()));
        Self(url)
    }

    /// The same credentials at another host, by its name or its address.
    pub fn with_host(&self, host: &str, port: u16) -> Result<Self, InvalidUrl> {
        let mut url = self.0.clone();
        let bracketed = format!("[{host}]");
        let host = if host.contains(':') { &bracketed } else { host };
        url.set_host(Some(host)).map_err(|_| InvalidUrl("it names no host"))?;
        let _ = url.set_port(Some(port));
        Ok(Self(url))
    }

    /// True when only host, port and path differ.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let Self(url) = other;
        let (Some(host), port) = (self.0.host_str(), self.0.port()) else { return false };
        let mut theirs = url.clone();
        theirs.set_path(self.0.path());
        theirs.set_host(Some(host)).is_ok() && theirs.set_port(port).is_ok() && theirs == self.0
    }

    pub(super) fn has_path_in(&self, paths: &[&str]) -> bool {
        paths.contains(&self.0.path())
    }

    /// The host, without the brackets of an IPv6 address.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// `host:port`, to tell people what cannot be reached.
    pub fn address(&self) -> String {
        let port = self.0.port().unwrap_or(match self.0.scheme() {
            "redis" | "rediss" => 6379,
            "amqp" => 5672,
            "amqps" => 5671,
            _ => 5432,
        });
        format!("{}:{port}", self.0.host_str().unwrap_or_default())
    }
}

impl AsRef<Self> for BackendUrl {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl FromStr for BackendUrl {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let url = Url::parse(text).map_err(|_| InvalidUrl("it cannot be parsed"))?;
        if url.host_str().is_none_or(str::is_empty) {
            return Err(InvalidUrl("it names no host"));
        }
        Ok(Self(url))
    }
}

impl fmt::Display for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.clone();
        if shown.password().is_some() && shown.set_password(Some("***")).is_err() {
            return f.write_str("***");
        }
        shown.fmt(f)
    }
}

impl fmt::Debug for BackendUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let url: BackendUrl = "amqp://shop:hush@mq:5673/%2f".parse().expect("a URL");
        assert_eq!(url.to_string(), "amqp://shop:***@mq:5673/%2f");
        assert!(!format!("{url:?}").contains("hush"));
        assert!(url.expose().contains("hush"));
        let error = "hush".parse::<BackendUrl>().expect_err("no URL").to_string();
        assert!(!error.contains("hush"));
    }

    #[test]
    fn another_host_keeps_the_credentials() {
        let url: BackendUrl = "rediss://shop:hush@a:7000/0".parse().expect("a URL");
        for (host, port, moved) in [
            ("b.example", 7001, "rediss://shop:hush@b.example:7001/0"),
            ("10.0.0.7", 6379, "rediss://shop:hush@10.0.0.7:6379/0"),
            ("fd00::7", 6379, "rediss://shop:hush@[fd00::7]:6379/0"),
        ] {
            let found = url.with_host(host, port).expect("a host");
            assert_eq!(found.expose(), moved);
            assert_eq!(found.host(), host);
            assert!(found.is_like(&url) && url.is_like(&found));
        }
        for other in ["redis://shop:hush@a:7000/0", "rediss://shop:hash@a:7000/0"] {
            assert!(!url.is_like(&other.parse().expect("a URL")), "{other}");
        }
    }

    #[test]
    fn the_address_names_host_and_port() {
        for (url, address) in [
            ("redis://cache", "cache:6379"),
            ("amqp://a:b@mq:5673/%2f", "mq:5673"),
            ("postgres://db/lastunit", "db:5432"),
        ] {
            assert_eq!(url.parse::<BackendUrl>().expect("a URL").address(), address);
        }
    }
}
