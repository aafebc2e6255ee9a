//! A private Redis: append-only file, no eviction, a password.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use super::ports::{self, Port};
use super::{Backend, Home, Process, Recipe, StackError, credentials, programs};

pub type Redis = Backend<RedisRecipe>;

pub struct RedisRecipe {
    server: PathBuf,
    config: PathBuf,
    port: Port,
    password: String,
}

impl Recipe for RedisRecipe {
    const NAME: &'static str = "redis";

    fn prepare(home: &Home) -> Result<Self, StackError> {
        let server = programs::find("redis-server", "redis-server (or redis)")?;
        let password = credentials::password(home)?;
        let [port] = ports::claim(home)?;
        let config = home.write("redis.conf", &config(home, &port, &password, &[]))?;
        Ok(Self { server, config, port, password })
    }

    fn launch(&self, home: &mut Home, processes: &mut Vec<Process>) -> Result<(), StackError> {
        let mut command = programs::command(&self.server);
        command.arg(&self.config).current_dir(home.dir());
        processes.push(Process::spawn(home, Self::NAME, Signal::SIGTERM, command)?);
        Ok(())
    }

    fn answers(&self) -> Result<(), String> {
        let reply = self.ping().map_err(|error| error.to_string())?;
        // While it loads its data it answers PING with -LOADING.
        if reply == "+OK\r\n+PONG\r\n" { Ok(()) } else { Err(format!("it answered {reply:?}")) }
    }

    fn url(&self) -> String {
        format!("redis://:{}@127.0.0.1:{}/0", self.password, self.port.number())
    }

    fn port(&self) -> u16 {
        self.port.number()
    }
}

impl Backend<RedisRecipe> {
    /// Call this before [`kill`](Self::kill), if everything that Redis has answered has to survive.
    ///
    /// With `appendfsync everysec` a write reaches the kernel before its answer goes out, but not
    /// while the disk is still busy with the last second: then Redis answers first, and writes up to
    /// two seconds later. From now on, also after a restart, it writes first, always.
    pub fn write_before_answering(&self) -> Result<(), StackError> {
        let told = "write before it answers";
        self.tell(told, "CONFIG SET appendfsync always\r\nCONFIG REWRITE\r\n")
    }

    /// Becomes a replica of another one, until it is restarted.
    pub fn follow(&self, leader: &Self) -> Result<(), StackError> {
        let told = "wait for no further replica";
        leader.tell(
            told,
            "CONFIG SET repl-diskless-sync yes\r\nCONFIG SET repl-diskless-sync-delay 0\r\n",
        )?;
        let RedisRecipe { port, password, .. } = &leader.recipe;
        let port = port.number();
        let follow = format!("CONFIG SET masterauth {password}\r\nREPLICAOF 127.0.0.1 {port}\r\n");
        self.tell("follow another one", &follow)
    }

    /// Two commands that are answered with OK.
    fn tell(&self, told: &'static str, commands: &str) -> Result<(), StackError> {
        let disobeyed = |reason| StackError::Disobeyed { backend: RedisRecipe::NAME, told, reason };
        let reply = self.recipe.ask(commands).map_err(|error| disobeyed(error.to_string()))?;
        if reply == "+OK\r\n+OK\r\n+OK\r\n" { Ok(()) } else { Err(disobeyed(reply)) }
    }
}

impl RedisRecipe {
    fn ping(&self) -> std::io::Result<String> {
        self.ask("PING\r\n")
    }

    fn ask(&self, commands: &str) -> std::io::Result<String> {
        ask(self.port.number(), &self.password, commands)
    }
}

/// The replies to AUTH and to these inline commands.
pub(super) fn ask(port: u16, password: &str, commands: &str) -> std::io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    // QUIT makes the server close the connection, so that the reply has an end.
    write!(stream, "AUTH {password}\r\n{commands}QUIT\r\n")?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply.strip_suffix("+OK\r\n").unwrap_or(&reply).to_owned())
}

/// Stock in Redis is rebuilt from the ledger if need be, so `everysec` is enough; evicting a key
/// would be a wrong stock, so it is an error instead. Snapshots would only cost time.
pub(super) fn config(home: &Home, port: &Port, password: &str, more: &[String]) -> String {
    let lines = [
        "bind 127.0.0.1".to_owned(),
        format!("port {}", port.number()),
        format!("requirepass {password}"),
        format!("dir \"{}\"", home.dir().display()),
        "daemonize no".to_owned(),
        "appendonly yes".to_owned(),
        "appendfsync everysec".to_owned(),
        "maxmemory-policy noeviction".to_owned(),
        "save \"\"".to_owned(),
    ];
    [&lines[..], more].concat().join("\n") + "\n"
}
