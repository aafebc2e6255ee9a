//! Backends of a test's own: they may be killed, filled and emptied, because nobody else uses them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use shared::devstack::{RabbitMq, Redis, RedisCluster, Stack};
use uuid::Uuid;

/// A directory that vanishes with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty one.
    pub fn create() -> Self {
        let name = format!("lastunit-trials-{}", Uuid::new_v4().simple());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).expect("a directory of its own");
        Self(dir.canonicalize().expect("the directory that was just created"))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All three backends.
pub struct Own<T> {
    // Dropped in this order: first what runs, then where it ran.
    pub backend: T,
    _scratch: Scratch,
}

/// A stack of the test's own. Blocks for about three seconds, so it leaves the other tests their
/// thread.
pub fn own_stack() -> Own<Stack> {
    tokio::task::block_in_place(|| {
        let scratch = Scratch::create();
        let backend = Stack::start(&scratch.0, &|_| ()).expect("a stack of its own");
        Own { backend, _scratch: scratch }
    })
}

/// A RabbitMQ of the test's own; takes as long as a stack.
pub fn own_rabbitmq() -> Own<RabbitMq> {
    tokio::task::block_in_place(|| {
        let scratch = Scratch::create();
        let backend = RabbitMq::start(&scratch.0).expect("a RabbitMQ of its own");
        Own { backend, _scratch: scratch }
    })
}

/// An empty Redis of the test's own; starts in a few milliseconds.
pub fn own_redis() -> Own<Redis> {
    tokio::task::block_in_place(|| {
        let scratch = Scratch::create();
        let backend = Redis::start(&scratch.0).expect("a Redis of its own");
        Own { backend, _scratch: scratch }
    })
}

/// A Redis Cluster of the test's own: three primaries, each with a replica. Takes some seconds.
pub fn own_cluster() -> Own<RedisCluster> {
    tokio::task::block_in_place(|| {
        let scratch = Scratch::create();
        let backend = RedisCluster::start(&scratch.0).expect("a cluster of its own");
        Own { backend, _scratch: scratch }
    })
}

/// Says something to a Redis that no service says, and expects `+OK`. Over a plain socket: client
/// libraries belong to the windows.
pub fn command(redis: &Redis, command: &str) {
    tokio::task::block_in_place(|| {
        let password = password(redis);
        let mut stream = TcpStream::connect(("127.0.0.1", redis.port())).expect("a connection");
        write!(stream, "AUTH {password}\r\n{command}\r\nQUIT\r\n").expect("it is sent");
        let mut replies = String::new();
        stream.read_to_string(&mut replies).expect("the replies");
        assert_eq!(replies, "+OK\r\n+OK\r\n+OK\r\n", "{command}");
    });
}

/// From now on it writes nothing by itself, also after a restart.
pub fn stop_writing(redis: &Redis) {
    command(redis, "CONFIG SET appendonly no");
    command(redis, "CONFIG REWRITE");
}

/// It comes back with what it has now, however much it is told until then.
pub fn write_only_this(redis: &Redis) {
    stop_writing(redis);
    command(redis, "SAVE");
}

/// Lets this one be reached with the other's password as well, so that one address may lead to
/// either.
pub fn share_password(redis: &Redis, others: &Redis) {
    command(redis, &format!("ACL SETUSER default >{}", password(others)));
}

fn password(redis: &Redis) -> String {
    redis.url().split([':', '@']).nth(2).expect("a password").to_owned()
}
