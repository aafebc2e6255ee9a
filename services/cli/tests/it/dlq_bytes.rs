//! Dead letters whose bytes are changed, or travel to another ledger.

use std::fs;

use serde_json::Value;
use shared::contract::{ReservationsPlaced, encode_reservations};
use shared::domain::LetterKind;
use shared::ledger::Letter;
use uuid::Uuid;

use crate::command::{Folder, json, lastunit, run, stderr};
use crate::dlq::Office;

/// Bytes that nobody can read, parked as the reconciler parks them.
async fn park_bytes(office: &Office, body: &[u8]) -> String {
    let [identity] = reconciler::letters::identities(body).try_into().expect("one letter");
    assert_eq!(identity.kind, LetterKind::Unreadable);
    let letter = Letter {
        letter_id: identity.letter_id,
        kind: identity.kind,
        subject: None,
        reason: "undecodable".to_owned(),
        error: "nobody can read it".to_owned(),
        source: "orders.0".to_owned(),
        headers: "{}".to_owned(),
        message_id: None,
        body: body.to_vec(),
    };
    office.ledger.park(&[letter]).await.expect("parked");
    identity.letter_id.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_changes_what_may_change_and_keeps_the_bytes_as_they_came() {
    let office = Office::selling(10).await;
    let parked = office.park(1).await;
    let id = parked[0].reservation_id.to_string();
    let before = office.json(&["show", &id]);
    for field in ["item", "buyer", "quantity", "request_id", "reservation_id"] {
        let other = if field.ends_with("_id") { Uuid::nil().to_string() } else { "7".to_owned() };
        let set = format!(
            "{field}={}",
            if field == "item" || field == "buyer" { "other" } else { &other }
        );
        let output = run(&mut office.dlq(&["edit", &id, "--set", &set]));
        assert_eq!(output.status.code(), Some(1), "{set}");
        assert!(stderr(&output).contains("never changes"), "{set}: {}", stderr(&output));
    }
    let output = run(&mut office.dlq(&["edit", &id, "--set", "environment=\"no uuid\""]));
    assert!(stderr(&output).contains("cannot be read"), "{}", stderr(&output));
    assert_eq!(office.json(&["show", &id]), before, "nothing has changed");

    let edited = office.json(&["edit", &id, "--set", "epoch=3", "--as", "ann"]);
    assert_eq!(edited["letters"], serde_json::json!([id]));
    let after = office.json(&["show", &id]);
    assert_eq!(after["original"], before["body"]);
    let body: Value = serde_json::from_str(after["body"].as_str().expect("text")).expect("JSON");
    assert_eq!(body["reservations"][0]["epoch"], 3);
    assert_eq!(after["history"][1]["who"], "ann");
    // In an editor, once more: the original stays the first one.
    let output = run(office.dlq(&["edit", &id]).env("VISUAL", "sed -i s/:3/:4/"));
    assert!(output.status.success(), "{}", stderr(&output));
    let again = office.json(&["show", &id]);
    assert!(again["body"].as_str().expect("text").contains("\"epoch\":4"), "{again}");
    assert_eq!(again["original"], before["body"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repaired_bytes_become_the_letters_of_their_reservations() {
    let office = Office::selling(10).await;
    let held = office.hold(&[0, 1]).await;
    let environment = office.ledger.environment().await.expect("an environment");
    let good = encode_reservations(&ReservationsPlaced { environment, reservations: held.clone() });
    let good = String::from_utf8(good).expect("text");
    let bad = good.replace("\"quantity\":1", "\"quantity\":0");
    let id = park_bytes(&office, bad.as_bytes()).await;
    assert_eq!(office.json(&["list"])[0]["class"], "undecodable");

    let folder = Folder::new("dlq-repair");
    let file = folder.path().join("letter.json");
    let repair = |text: &str| {
        fs::write(&file, text).expect("a file");
        run(&mut office.dlq(&["edit", &id, "--from", file.to_str().expect("a path"), "--json"]))
    };
    let greedy = repair(&good.replace("\"quantity\":1", "\"quantity\":2"));
    assert!(stderr(&greedy).contains("contradict the hold"), "{}", stderr(&greedy));
    let repaired = repair(&good);
    assert!(repaired.status.success(), "{}", stderr(&repaired));
    let listed = office.json(&["list"]);
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 2, "{listed:?}");
    for letter in listed {
        assert_eq!((&letter["class"], &letter["edited"]), (&"would_confirm".into(), &true.into()));
    }
    // The same bytes turn up again: their reservations are parked already.
    park_bytes(&office, bad.as_bytes()).await;
    let taken = repair(&good);
    assert!(stderr(&taken).contains("there is a letter"), "{}", stderr(&taken));
    assert_eq!(office.json(&["list"]).as_array().map(Vec::len), Some(3), "nothing has changed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_travel_to_another_ledger_and_overwrite_nothing_there() {
    let (office, elsewhere) = (Office::selling(10).await, Office::selling(10).await);
    let parked = office.park(2).await;
    park_bytes(&office, &[0, 255, 10, 128]).await;
    office.json(&["discard", &parked[1].reservation_id.to_string()]);
    let folder = Folder::new("dlq-travel");
    let file = folder.path().join("letters.jsonl");
    let path = file.to_str().expect("a path");
    assert!(run(&mut office.dlq(&["export", "--all", "--to", path])).status.success());
    let again = run(&mut office.dlq(&["export", "--all", "--to", path]));
    assert!(stderr(&again).contains(path), "a file that exists is not overwritten");

    let lines = fs::read_to_string(&file).expect("lines");
    assert_eq!(lines.lines().count(), 3);
    // One wrong line at the end, and nothing is taken in.
    let wrong = folder.path().join("wrong.jsonl");
    let (first, rest) = lines.split_once('\n').expect("lines");
    for (text, said) in [
        (format!("{lines}{first}\n"), "line 4"),
        (lines.replacen("\"attempts\":1", "\"attempts\":0", 1), "attempts"),
        (format!("{first}\n{}", rest.replacen("\"body", "\"bodies", 1)), "line 2"),
    ] {
        fs::write(&wrong, text).expect("a file");
        let output = run(&mut elsewhere.dlq(&["import", wrong.to_str().expect("a path")]));
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(said), "{said}: {}", stderr(&output));
        assert_eq!(elsewhere.states(), [], "nothing has changed");
    }
    let imported = elsewhere.json(&["import", path]);
    assert_eq!((&imported["imported"], &imported["known"]), (&3.into(), &0.into()));
    let listed = json(lastunit(&elsewhere.config).args(["dlq", "list", "--json"]));
    let classes: Vec<_> = listed.as_array().expect("a list").iter().map(|l| &l["class"]).collect();
    assert!(classes.contains(&&"foreign_environment".into()), "{classes:?}");
    assert!(classes.contains(&&"undecodable".into()), "{classes:?}");
    let copy = folder.path().join("copy.jsonl");
    let to = copy.to_str().expect("a path");
    assert!(run(&mut elsewhere.dlq(&["export", "--all", "--to", to])).status.success());
    assert_eq!(fs::read_to_string(&copy).expect("lines"), lines, "byte by byte");
    let again = elsewhere.json(&["import", path]);
    assert_eq!((&again["imported"], &again["known"]), (&0.into(), &3.into()));
    // What is of another environment is never sent.
    let replayed = elsewhere.json(&["replay", "--all"]);
    assert_eq!((&replayed["sent"], &replayed["skipped"]), (&0.into(), &2.into()), "{replayed}");
}
