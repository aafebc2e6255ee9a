//! Lets a slot of a private Redis Cluster move from one primary to another, in two steps.

use super::StackError;
use super::redis_cluster::RedisCluster;

impl RedisCluster {
    /// Lets a slot move from one primary to another, and leaves it half-way: what is not there yet
    /// is asked for at the other.
    pub fn begin_to_move(&self, key: &str, to: usize) -> Result<(), StackError> {
        let from = self.owner_of(key)?;
        let slot = self.ask(from, &format!("CLUSTER KEYSLOT {key}"))?;
        let (from_id, to_id) = (self.ask(from, "CLUSTER MYID")?, self.ask(to, "CLUSTER MYID")?);
        self.tell(to, &format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"))?;
        self.tell(from, &format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"))
    }

    /// Ends what [`begin_to_move`](Self::begin_to_move) has begun: all keys of the slot move with it.
    pub fn finish_to_move(&self, key: &str, to: usize) -> Result<(), StackError> {
        let from = self.owner_of(key)?;
        let slot = self.ask(from, &format!("CLUSTER KEYSLOT {key}"))?;
        let to_id = self.ask(to, "CLUSTER MYID")?;
        let (port, password) = (self.members[to].port(), self.password());
        loop {
            let reply = self.ask(from, &format!("CLUSTER GETKEYSINSLOT {slot} 100"))?;
            // `*n`, then `$length` and the key, each on a line.
            let keys: Vec<_> = reply.lines().skip(2).step_by(2).collect();
            if keys.is_empty() {
                break;
            }
            let keys = keys.join(" ");
            let migrate =
                format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 AUTH {password} KEYS {keys}");
            self.tell(from, &migrate)?;
        }
        for member in [to, from] {
            self.tell(member, &format!("CLUSTER SETSLOT {slot} NODE {to_id}"))?;
        }
        Ok(())
    }

    fn password(&self) -> String {
        let url = self.members[0].url();
        url.split([':', '@']).nth(2).unwrap_or_default().to_owned()
    }
}
