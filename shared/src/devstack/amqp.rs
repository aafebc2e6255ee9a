//! Just enough AMQP 0-9-1 to know that RabbitMQ is ready: log in, and declare a queue.
//!
//! The listener opens before a node is worth much to anyone. A declare that is answered proves
//! the user, the virtual host and the database behind them. The queue is exclusive, so it goes
//! with the connection.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

type Method = (u16, u16);

const START: Method = (10, 10);
const START_OK: Method = (10, 11);
const TUNE: Method = (10, 30);
const TUNE_OK: Method = (10, 31);
const OPEN: Method = (10, 40);
const OPEN_OK: Method = (10, 41);
const CHANNEL_OPEN: Method = (20, 10);
const CHANNEL_OPEN_OK: Method = (20, 11);
const QUEUE_DECLARE: Method = (50, 10);
const QUEUE_DECLARE_OK: Method = (50, 11);
const CLOSE: Method = (10, 50);
const CLOSE_OK: Method = (10, 51);

const METHOD_FRAME: u8 = 1;
const FRAME_END: u8 = 0xCE;
/// Larger than any frame before `tune` may be; a guard against reading nonsense.
const MAX_PAYLOAD: usize = 128 * 1024;

pub(super) fn declare_something(port: u16, user: &str, password: &str) -> io::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(b"AMQP\0\0\x09\x01")?;
    expect(&mut stream, START)?;
    send(
        &mut stream,
        0,
        START_OK,
        &[&[0; 4], &short("PLAIN"), &long(&format!("\0{user}\0{password}")), &short("en_US")],
    )?;
    // Channels, frame size and heartbeat as the server proposes them.
    let tune = expect(&mut stream, TUNE)?;
    send(&mut stream, 0, TUNE_OK, &[&tune])?;
    send(&mut stream, 0, OPEN, &[&short("/"), &short(""), &[0]])?;
    expect(&mut stream, OPEN_OK)?;
    send(&mut stream, 1, CHANNEL_OPEN, &[&short("")])?;
    expect(&mut stream, CHANNEL_OPEN_OK)?;
    // Ticket, a name that the server chooses, the bit `exclusive`, no arguments.
    send(&mut stream, 1, QUEUE_DECLARE, &[&[0; 2], &short(""), &[0b100], &[0; 4]])?;
    expect(&mut stream, QUEUE_DECLARE_OK)?;
    send(&mut stream, 0, CLOSE, &[&[0; 2], &short("ready"), &[0; 4]])?;
    expect(&mut stream, CLOSE_OK).map(drop)
}

fn send(
    stream: &mut TcpStream,
    channel: u16,
    method: Method,
    arguments: &[&[u8]],
) -> io::Result<()> {
    let mut payload = Vec::new();
    payload.extend(method.0.to_be_bytes());
    payload.extend(method.1.to_be_bytes());
    payload.extend(arguments.concat());
    let mut frame = vec![METHOD_FRAME];
    frame.extend(channel.to_be_bytes());
    frame.extend(length(payload.len()));
    frame.extend(payload);
    frame.push(FRAME_END);
    stream.write_all(&frame)
}

/// The arguments of the next method, which has to be this one.
fn expect(stream: &mut TcpStream, expected: Method) -> io::Result<Vec<u8>> {
    let mut header = [0; 7];
    stream.read_exact(&mut header)?;
    let [kind, _, _, size @ ..] = header;
    let size = usize::try_from(u32::from_be_bytes(size)).unwrap_or(usize::MAX);
    if kind != METHOD_FRAME || !(4..=MAX_PAYLOAD).contains(&size) {
        return Err(io::Error::other(format!("not an AMQP method: {header:?}")));
    }
    let mut payload = vec![0; size + 1];
    stream.read_exact(&mut payload)?;
    payload.truncate(size);
    let method = (
        u16::from_be_bytes([payload[0], payload[1]]),
        u16::from_be_bytes([payload[2], payload[3]]),
    );
    if method != expected {
        return Err(io::Error::other(format!("method {method:?} where {expected:?} was due")));
    }
    Ok(payload.split_off(4))
}

/// The callers' strings are far below 256 bytes.
fn short(text: &str) -> Vec<u8> {
    let mut bytes = vec![u8::try_from(text.len()).unwrap_or(u8::MAX)];
    bytes.extend(text.as_bytes());
    bytes
}

fn long(text: &str) -> Vec<u8> {
    [&length(text.len()), text.as_bytes()].concat()
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes()
}
