//! One command on a plain socket, for what no verb of the room may do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use shared::config;

/// The first line of the reply, or the whole text of a bulk reply.
pub(super) fn command(redis: &config::Redis, words: &[&str]) -> String {
    let url = redis.url.expose();
    let password = url.split(['@', ':']).nth(2).expect("a password");
    let stream = TcpStream::connect(redis.url.address()).expect("a connection");
    let mut replies = BufReader::new(&stream);
    send(&stream, &["AUTH", password]);
    assert_eq!(line(&mut replies), "+OK");
    send(&stream, words);
    let reply = line(&mut replies);
    let Some(length) = reply.strip_prefix('$') else { return reply };
    let mut text = vec![0; length.parse().expect("a length")];
    replies.read_exact(&mut text).expect("the text");
    String::from_utf8(text).expect("a text")
}

fn send(mut stream: &TcpStream, words: &[&str]) {
    let mut message = format!("*{}\r\n", words.len());
    for word in words {
        message += &format!("${}\r\n{word}\r\n", word.len());
    }
    stream.write_all(message.as_bytes()).expect("sent");
}

fn line(replies: &mut impl BufRead) -> String {
    let mut line = String::new();
    replies.read_line(&mut line).expect("a reply");
    line.trim_end().to_owned()
}
