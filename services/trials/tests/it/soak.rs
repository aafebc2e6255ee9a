//! A short soak: the same as `make soak`, with seeds that never change.

use std::process::Stdio;

use tokio::process::Command;
use trials::stack::Scratch;

#[tokio::test]
async fn five_rounds_of_faults_break_no_law() {
    let scratch = Scratch::create();
    let mut soak = Command::new(env!("CARGO_BIN_EXE_trial"));
    soak.args(["soak", "--rounds", "5", "--seed", "1", "--dir"]).arg(scratch.path());
    // If this test is given up, nothing that the soak started may stay.
    soak.kill_on_drop(true).stdin(Stdio::null());
    let soaked = soak.output().await.expect("the soak runs");
    let told = String::from_utf8_lossy(&soaked.stdout);
    let complaints = String::from_utf8_lossy(&soaked.stderr);
    assert!(soaked.status.success(), "{told}{complaints}");
    assert!(told.contains("5 rounds, 0 with violations"), "{told}");
}
