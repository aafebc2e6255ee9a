//! Free loopback ports that stay free: chosen, claimed, remembered.

use std::io;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixListener;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Home, StackError};

/// Below the range from which Linux takes the source ports of connections (32768 and up by
/// default). A backend that was killed must get its port back, and no connection that somebody
/// opened meanwhile may sit on it.
const FIRST: u16 = 20_000;
const LAST: u16 = 29_999;
const LET_GO_BOUND: Duration = Duration::from_millis(300);

/// A port that no other stack on this machine will choose while this value lives.
///
/// Between choosing a port and the backend's binding it, and while a killed backend is down,
/// nothing listens there. The claim closes that window among LastUnit processes: it is a name in
/// Linux's abstract socket space, which the kernel frees however this process ends.
pub(super) struct Port {
    number: u16,
    _claim: Option<UnixListener>,
}

impl Port {
    pub(super) fn number(&self) -> u16 {
        self.number
    }

    fn claim(number: u16) -> Option<Self> {
        let claim = abstract_listener(&format!("lastunit-port-{number}")).ok()?;
        // Asked by connecting, not by binding: a child that another thread is just spawning would
        // hold a copy of the bound socket for a moment, and the backend could not bind it then.
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, number)).is_err();
        refused.then_some(Self { number, _claim: claim })
    }

    /// The port of last time. Its claim may take a moment to vanish after its last owner let go
    /// (such a child again), so a taken one is waited for.
    fn claim_again(number: u16) -> Option<Self> {
        let deadline = Instant::now() + LET_GO_BOUND;
        loop {
            let port = Self::claim(number);
            if port.is_some() || Instant::now() >= deadline {
                return port;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Remembered(Vec<u16>);

/// The same ports as last time in this home where they are free, others where they are not.
pub(super) fn claim<const N: usize>(home: &Home) -> Result<[Port; N], StackError> {
    let text = std::fs::read(home.file("ports.json")).unwrap_or_default();
    let Remembered(before) = serde_json::from_slice(&text).unwrap_or_default();
    let mut ports = Vec::with_capacity(N);
    for index in 0..N {
        let again = before.get(index).and_then(|number| Port::claim_again(*number));
        ports.push(again.map_or_else(any, Ok)?);
    }
    let numbers = Remembered(ports.iter().map(Port::number).collect());
    home.write("ports.json", &serde_json::to_string(&numbers).unwrap_or_default())?;
    ports.try_into().map_err(|_| StackError::NoPort { first: FIRST, last: LAST })
}

/// Starts at a random place, so that stacks started together rarely meet.
fn any() -> Result<Port, StackError> {
    let span = LAST - FIRST + 1;
    let (random, _) = Uuid::new_v4().as_u64_pair();
    let start = u16::try_from(random % u64::from(span)).unwrap_or_default();
    (0..span)
        .map(|step| FIRST + (start + step) % span)
        .find_map(Port::claim)
        .ok_or(StackError::NoPort { first: FIRST, last: LAST })
}

#[cfg(target_os = "linux")]
fn abstract_listener(name: &str) -> io::Result<Option<UnixListener>> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    let address = SocketAddr::from_abstract_name(name)?;
    UnixListener::bind_addr(&address).map(Some)
}

/// Elsewhere the window stays open; a collision then shows as a failed start.
#[cfg(not(target_os = "linux"))]
fn abstract_listener(_name: &str) -> io::Result<Option<UnixListener>> {
    Ok(None)
}
