//! One keep-alive connection that asks and waits for the answer.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Larger than any answer to a purchase.
const LARGEST_ANSWER: usize = 16 * 1024;

pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What was answered.
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) body: &'a [u8],
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: vec![0; LARGEST_ANSWER] })
    }

    /// Sends a request and reads its whole answer.
    pub(super) async fn ask(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request).await.context("cannot send a request")?;
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).await;
            let read = read.context("cannot read an answer")?;
            if read == 0 {
                bail!("the server closed a connection after {filled} bytes of an answer");
            }
            filled += read;
            if let Some(answer) = parse(&self.buffer[..filled])? {
                // Borrowed anew: the buffer is read into again when the answer is not complete.
                let Parsed { status, body_at } = answer;
                return Ok(Answer { status, body: &self.buffer[body_at..filled] });
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Parsed {
    status: u16,
    body_at: usize,
}

/// `None` while an answer is not complete.
fn parse(bytes: &[u8]) -> anyhow::Result<Option<Parsed>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&bytes[..end]).context("an answer's head is not text")?;
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("an answer without a status: {head}"))?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())
    });
    let length = length.with_context(|| format!("an answer without a length: {head}"))??;
    let body_at = end + 4;
    Ok((bytes.len() >= body_at + length).then_some(Parsed { status, body_at }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let whole = b"HTTP/1.1 409 Conflict\r\nContent-Length: 3\r\nx: y\r\n\r\nabc";
        assert_eq!(parse(whole).expect("good"), Some(Parsed { status: 409, body_at: 50 }));
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]).expect("good"), None, "{length}");
        }
        assert!(parse(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
