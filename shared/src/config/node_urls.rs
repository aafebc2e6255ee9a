//! Where a Redis is: one address, or several nodes of a cluster.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use super::{BackendUrl, InvalidUrl};

/// One URL or more, separated by commas. Prints without passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeUrls {
    first: BackendUrl,
    others: Vec<BackendUrl>,
    /// All of them, passwords included.
    exposed: String,
}

impl NodeUrls {
    fn new(first: BackendUrl, others: Vec<BackendUrl>) -> Self {
        let all = std::iter::once(&first).chain(&others);
        let exposed = all.map(BackendUrl::expose).collect::<Vec<_>>().join(",");
        Self { first, others, exposed }
    }

    /// The one that is meant where there is only one.
    pub fn first(&self) -> &BackendUrl {
        &self.first
    }

    /// Every one, in the order in which they were named.
    pub fn all(&self) -> impl Iterator<Item = &BackendUrl> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// All URLs, passwords included: for processes and client libraries only, never for a log.
    pub fn expose(&self) -> &str {
        &self.exposed
    }

    /// The same credentials at one other address, such as a proxy's.
    pub fn with_address(&self, address: SocketAddr) -> Self {
        self.first.with_address(address).into()
    }

    /// `host:port` of each, to tell people what cannot be reached.
    pub fn address(&self) -> String {
        self.all().map(BackendUrl::address).collect::<Vec<_>>().join(", ")
    }

    /// True when they have the same scheme, user and password.
    pub(super) fn are_alike(&self) -> bool {
        self.others.iter().all(|other| other.is_like(&self.first))
    }
}

impl From<BackendUrl> for NodeUrls {
    fn from(first: BackendUrl) -> Self {
        Self::new(first, Vec::new())
    }
}

impl AsRef<BackendUrl> for NodeUrls {
    fn as_ref(&self) -> &BackendUrl {
        &self.first
    }
}

impl FromStr for NodeUrls {
    type Err = InvalidUrl;

    fn from_str(text: &str) -> Result<Self, InvalidUrl> {
        let mut urls = separate(text).into_iter().map(|url| url.trim().parse());
        let first = urls.next().unwrap_or_else(|| "".parse())?;
        Ok(Self::new(first, urls.collect::<Result<_, _>>()?))
    }
}

/// A comma separates only in front of a scheme: a password may have one of its own.
fn separate(text: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for part in text.split(',') {
        match urls.last_mut() {
            Some(url) if !part.contains("://") => {
                url.push(',');
                url.push_str(part);
            }
            _ => urls.push(part.to_owned()),
        }
    }
    urls
}

impl fmt::Display for NodeUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt(f)?;
        self.others.iter().try_for_each(|other| write!(f, ",{other}"))
    }
}

impl fmt::Debug for NodeUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_url_or_several_are_read_and_no_password_is_shown() {
        let one: NodeUrls = "redis://:hu,sh@a:7000/0".parse().expect("a URL");
        assert_eq!((one.to_string().as_str(), one.all().count()), ("redis://:***@a:7000/0", 1));
        let text = "redis://:hu,sh@a:7000, redis://:hush@b:7001,redis://:hush@c";
        let three: NodeUrls = text.parse().expect("URLs");
        assert_eq!(three.address(), "a:7000, b:7001, c:6379");
        assert!(!format!("{three} {three:?}").contains("sh@"), "{three}");
        assert!(!three.are_alike(), "their passwords differ");
        assert_eq!(three.expose(), "redis://:hu,sh@a:7000,redis://:hush@b:7001,redis://:hush@c");
        for text in ["", ",", "redis://a,redis://", "nowhere,redis://b"] {
            text.parse::<NodeUrls>().expect_err(text);
        }
    }
}
