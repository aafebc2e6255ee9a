//! What the numbers were measured on.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;
use shared::devstack::Endpoints;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use url::Url;

use crate::report::Machine;

/// Asks the kernel, the backends and the working copy.
pub(crate) async fn describe(endpoints: &Endpoints) -> anyhow::Result<Machine> {
    let (cpu, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let memory_kib = field(&memory, "MemTotal").trim_end_matches(" kB").parse().unwrap_or(0);
    Ok(Machine {
        cpu: field(&cpu, "model name"),
        cores: std::thread::available_parallelism().map_or(0, usize::from),
        memory_mib: memory_kib / 1024,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        redis: redis_version(&endpoints.redis_url).await?,
        rabbitmq: rabbitmq_version(&endpoints.rabbitmq_url).await?,
        postgresql: postgresql_version(&endpoints.ledger_url).await?,
        lastunit: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit(),
        profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The first value in lines `name : value`.
fn field(text: &str, name: &str) -> String {
    let of_line = |line: &str| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(of_line).unwrap_or_default()
}

async fn redis_version(url: &str) -> anyhow::Result<String> {
    let client = redis::Client::open(url).context("not a URL of Redis")?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let info: String = redis::cmd("INFO").arg("server").query_async(&mut connection).await?;
    Ok(field(&info, "redis_version"))
}

async fn postgresql_version(url: &str) -> anyhow::Result<String> {
    let mut connection = PgConnection::connect(url).await.context("cannot connect")?;
    let version = sqlx::query_scalar("SHOW server_version").fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(version)
}

/// The broker says it in the first frame that it sends, in a table of names and values; the library
/// keeps that table to itself.
async fn rabbitmq_version(url: &str) -> anyhow::Result<String> {
    let url: Url = url.parse().context("not a URL of RabbitMQ")?;
    let (host, port) = (url.host_str().unwrap_or("127.0.0.1"), url.port().unwrap_or(5672));
    let mut stream = TcpStream::connect((host, port)).await?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await?;
    let mut frame = [0; 4096];
    let read = stream.read(&mut frame).await?;
    Ok(long_string(&frame[..read], b"\x07versionS").unwrap_or_default())
}

/// The value behind a name of a table: its length in four bytes, then its bytes.
fn long_string(frame: &[u8], name: &[u8]) -> Option<String> {
    let at = frame.windows(name.len()).position(|window| window == name)? + name.len();
    let (length, rest) = frame[at..].split_first_chunk::<4>()?;
    let value = rest.get(..u32::from_be_bytes(*length) as usize)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Of the sources that this was built from, if they are still there and under git.
fn commit() -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let describe = ["describe", "--always", "--dirty"];
    let output = Command::new("git").arg("-C").arg(sources).args(describe).output();
    let output = output.ok().filter(|output| output.status.success());
    output.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_long_strings_are_found_by_their_whole_name() {
        let info = "redis_version:7.0.15\r\nmodel\t: 3\nmodel name\t: Fast CPU\n";
        assert_eq!(field(info, "redis_version"), "7.0.15");
        assert_eq!(field(info, "model name"), "Fast CPU");
        assert_eq!(field(info, "absent"), "");
        let frame = b"..\x07versionS\x00\x00\x00\x063.12.1\x08platformS";
        assert_eq!(long_string(frame, b"\x07versionS").as_deref(), Some("3.12.1"));
        assert_eq!(long_string(&frame[..14], b"\x07versionS"), None);
    }
}
