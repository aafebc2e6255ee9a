//! Somebody who changes Redis past every script, as an operator with a console can. Over a plain
//! socket: client libraries belong to the windows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use shared::config;
use shared::domain::ItemId;
use tokio::task::block_in_place;

use crate::line::Line;

/// A key, and for how many milliseconds it lives on; negative when it stays for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub name: String,
    pub lives_ms: i64,
}

/// A connection on which anything can be said.
pub struct Console {
    stream: TcpStream,
    replies: BufReader<TcpStream>,
}

impl Console {
    /// Blocks, as all of its methods do.
    pub fn open(redis: &config::Redis) -> Self {
        let password = redis.url.expose().split(['@', ':']).nth(2).expect("a password");
        let stream = TcpStream::connect(redis.url.address()).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let replies = BufReader::new(stream.try_clone().expect("a socket"));
        let mut console = Self { stream, replies };
        assert_eq!(console.say(&["AUTH", password]), ["OK"]);
        console
    }

    /// Sends a command; the reply without its structure, one text for each value.
    pub fn say(&mut self, words: &[&str]) -> Vec<String> {
        let mut message = format!("*{}\r\n", words.len());
        for word in words {
            message += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.write_all(message.as_bytes()).expect("sent");
        let mut values = Vec::new();
        self.read(&mut values);
        values
    }

    fn read(&mut self, values: &mut Vec<String>) {
        let mut line = String::new();
        self.replies.read_line(&mut line).expect("a reply");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "*" => (0..rest.parse().unwrap_or(0)).for_each(|_| self.read(values)),
            "$" => {
                let Ok(length) = rest.parse::<usize>() else { return values.push(String::new()) };
                let mut text = vec![0; length + 2];
                self.replies.read_exact(&mut text).expect("the text");
                text.truncate(length);
                values.push(String::from_utf8_lossy(&text).into_owned());
            }
            "-" => panic!("Redis refuses: {rest}"),
            _ => values.push(rest.to_owned()),
        }
    }
}

impl Line {
    /// Adds units to what Redis sells, and tells nobody.
    pub fn drift(&self, item: &ItemId, units: i64) {
        let key = self.key(item, "sale");
        self.say(&["HINCRBY", &key, "available", &units.to_string()]);
    }

    /// Adds units to what Redis counts for a buyer.
    pub fn drift_total(&self, item: &ItemId, buyer: &str, units: i64) {
        let key = self.key(item, "buyers");
        self.say(&["HINCRBY", &key, buyer, &units.to_string()]);
    }

    /// What Redis counts for a buyer.
    pub fn total_in_redis(&self, item: &ItemId, buyer: &str) -> u64 {
        let key = self.key(item, "buyers");
        self.say(&["HGET", &key, buyer]).concat().parse().unwrap_or(0)
    }

    /// Lets Redis lose the bucket of an item; settled records stay.
    pub fn lose_bucket(&self, item: &ItemId) {
        let keys = ["sale", "buyers", "held", "unseen"].map(|what| self.key(item, what));
        self.say(&["DEL", &keys[0], &keys[1], &keys[2], &keys[3]]);
    }

    /// Everything that Redis has of an item.
    pub fn keys_of(&self, item: &ItemId) -> Vec<Key> {
        let namespace = &self.config.namespace;
        let mut names = Vec::new();
        for pattern in [format!("{namespace}:{{{item}#*"), format!("{namespace}:{{{item}}}*")] {
            let mut cursor = "0".to_owned();
            loop {
                let scan = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", "10000"];
                let mut reply = self.say(&scan).into_iter();
                cursor = reply.next().expect("a cursor");
                names.extend(reply);
                if cursor == "0" {
                    break;
                }
            }
        }
        let lives = |name: String| {
            let lives_ms = self.say(&["PTTL", &name]).concat().parse().expect("a number");
            Key { name, lives_ms }
        };
        names.into_iter().map(lives).collect()
    }

    fn say(&self, words: &[&str]) -> Vec<String> {
        block_in_place(|| Console::open(&self.config.redis).say(words))
    }

    /// As `docs/ARCHITECTURE.md` lists them.
    fn key(&self, item: &ItemId, what: &str) -> String {
        format!("{}:{{{item}#0}}:{what}", self.config.namespace)
    }
}
