//! A wire to a backend that can lose answers, hold them back, delay them, and be cut.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shared::config::BackendUrl;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;

/// A server that says nothing for so long has worked on what it was sent.
const QUIET: Duration = Duration::from_millis(50);

/// How the wire treats what the server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// After a delay.
    Forward(Duration),
    /// Nothing gets back; connections stay open.
    Silent,
    /// New connections are closed at once.
    Refuse,
}

/// What becomes of the connection whose answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// It is closed on both sides.
    Cut,
    /// It stays open, and nothing ever comes back on it.
    Silence,
}

/// Answers to lose.
#[derive(Debug)]
struct Trap {
    needle: Vec<u8>,
    loss: Loss,
    times: u32,
}

/// A proxy on a port of its own; dropping it closes the port.
pub struct Proxy {
    address: SocketAddr,
    wire: Arc<Wire>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Wire {
    upstream: Mutex<String>,
    /// Connections that were made.
    made: AtomicU32,
    manner: watch::Sender<Manner>,
    /// Counts the cuts; a connection lives until the next.
    cuts: watch::Sender<u32>,
    trap: Mutex<Option<Trap>>,
    lost: watch::Sender<u32>,
}

impl Proxy {
    /// A wire that forwards.
    pub async fn to(backend: &impl AsRef<BackendUrl>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let wire = Arc::new(Wire {
            upstream: Mutex::new(backend.as_ref().address()),
            made: AtomicU32::new(0),
            manner: watch::Sender::new(Manner::Forward(Duration::ZERO)),
            cuts: watch::Sender::new(0),
            trap: Mutex::new(None),
            lost: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&wire)));
        Self { address, wire, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses the server's answer to the next `times` pieces of client data that contain `needle`.
    /// The server gets each piece and acts on it.
    pub fn lose_answers(&self, needle: impl Into<Vec<u8>>, times: u32, loss: Loss) {
        *self.wire.trap() = Some(Trap { needle: needle.into(), loss, times });
    }

    /// How many answers have been lost.
    pub fn lost(&self) -> u32 {
        *self.wire.lost.borrow()
    }

    pub fn delay(&self, delay: Duration) {
        self.wire.manner.send_replace(Manner::Forward(delay));
    }

    /// Holds everything back that the server says.
    pub fn fall_silent(&self) {
        self.wire.manner.send_replace(Manner::Silent);
    }

    /// Closes every connection and lets no new one through.
    pub fn refuse(&self) {
        self.wire.manner.send_replace(Manner::Refuse);
        self.cut();
    }

    /// Forwards again. What was held back now comes late.
    pub fn recover(&self) {
        self.delay(Duration::ZERO);
    }

    /// Leads to another backend, as an address does that moves in a failover.
    pub fn lead_to(&self, backend: &BackendUrl) {
        *self.wire.upstream() = backend.address();
        self.cut();
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> u32 {
        self.wire.made.load(Ordering::Relaxed)
    }

    /// Closes every connection.
    pub fn cut(&self) {
        self.wire.cuts.send_modify(|cuts| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

impl Wire {
    fn upstream(&self) -> std::sync::MutexGuard<'_, String> {
        self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trap(&self) -> std::sync::MutexGuard<'_, Option<Trap>> {
        self.trap.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Is the answer to this data to be lost, and how?
    fn springs(&self, data: &[u8]) -> Option<Loss> {
        let mut armed = self.trap();
        let trap = armed.as_mut()?;
        let found = data.windows(trap.needle.len()).any(|part| part == trap.needle);
        if !found || trap.times == 0 {
            return None;
        }
        trap.times -= 1;
        Some(trap.loss)
    }
}

async fn accept(listener: TcpListener, wire: Arc<Wire>) {
    while let Ok((client, _)) = listener.accept().await {
        if *wire.manner.borrow() == Manner::Refuse {
            continue;
        }
        tokio::spawn(connect(client, Arc::clone(&wire)));
    }
}

/// One connection, until either side closes it or the wire is cut.
async fn connect(client: TcpStream, wire: Arc<Wire>) {
    let mut cuts = wire.cuts.subscribe();
    wire.made.fetch_add(1, Ordering::Relaxed);
    let upstream = wire.upstream().clone();
    let Ok(server) = TcpStream::connect(upstream).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // Whether the server's answers still get back on this connection.
    let lost = watch::Sender::new(None);
    tokio::select! {
        () = ask(from_client, to_server, &wire, &lost) => {}
        () = answer(from_server, to_client, &wire, lost.subscribe()) => {}
        _ = cuts.changed() => {}
    }
}

async fn ask(
    mut from_client: OwnedReadHalf,
    mut to_server: OwnedWriteHalf,
    wire: &Wire,
    lost: &watch::Sender<Option<Loss>>,
) {
    let mut data = vec![0; 64 * 1024];
    while let Ok(size @ 1..) = from_client.read(&mut data).await {
        let loss = wire.springs(&data[..size]);
        if let Some(loss) = loss {
            // Before the data goes out, so that the answer cannot be faster.
            lost.send_replace(Some(loss));
        }
        if to_server.write_all(&data[..size]).await.is_err() {
            return;
        }
    }
}

async fn answer(
    mut from_server: OwnedReadHalf,
    mut to_client: OwnedWriteHalf,
    wire: &Wire,
    lost: watch::Receiver<Option<Loss>>,
) {
    let mut manner = wire.manner.subscribe();
    let mut counted = false;
    let mut data = vec![0; 64 * 1024];
    loop {
        let read = from_server.read(&mut data).await;
        let Some(loss) = *lost.borrow() else {
            let Ok(size @ 1..) = read else { return };
            let speaks = manner.wait_for(|manner| *manner != Manner::Silent).await;
            let Ok(Manner::Forward(delay)) = speaks.map(|manner| *manner) else { return };
            tokio::time::sleep(delay).await;
            if to_client.write_all(&data[..size]).await.is_err() {
                return;
            }
            continue;
        };
        if !counted {
            wire.lost.send_modify(|lost| *lost += 1);
            counted = true;
        }
        match loss {
            Loss::Silence if matches!(read, Ok(1..)) => {}
            Loss::Silence => std::future::pending().await,
            // What came may have been the answer to something earlier; this one is waited for too.
            Loss::Cut => {
                while let Ok(Ok(1..)) = timeout(QUIET, from_server.read(&mut data)).await {}
                return;
            }
        }
    }
}
