//! Dead letters, from the operator's side.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use shared::config::Config;
use shared::devstack::World;
use shared::domain::{
    BucketCount, BuyerId, ItemId, Quantity, RequestId, Reservation, ReservationId, broken_laws,
};
use shared::ledger::{Ledger, LetterFilter};
use shared::stock::{Bucket, Layout, ReserveReply, ReserveRequest, Reserved, Stock};
use trials::desk::Desk;

use crate::command::{Folder, json, lastunit, run, stderr, stdout};

/// A world with an item on sale and parked letters of it.
pub(crate) struct Office {
    pub(crate) config: Config,
    pub(crate) ledger: Ledger,
    pub(crate) stock: Stock,
    pub(crate) item: ItemId,
}

impl Office {
    pub(crate) async fn selling(total: u64) -> Self {
        let World { config } = World::new().await;
        let total = total.to_string();
        for arguments in [&["item", "put", "shoe", "--total", &total][..], &["warm", "shoe"]] {
            assert!(run(lastunit(&config).args(arguments)).status.success(), "{arguments:?}");
        }
        let ledger = Ledger::connect(&config.ledger).expect("a ledger");
        let stock = Stock::connect(&config.redis, &config.namespace).expect("a stock");
        Self { config, ledger, stock, item: "shoe".parse().expect("an item") }
    }

    /// Takes one unit for each of so many buyers, and parks their reservations.
    pub(crate) async fn park(&self, buyers: usize) -> Vec<Reservation> {
        let mut held = Vec::new();
        for page in (0..buyers).collect::<Vec<_>>().chunks(100) {
            held.extend(self.hold(page).await);
        }
        self.park_all(&held).await;
        held
    }

    /// Parks reservations as the reconciler does.
    pub(crate) async fn park_all(&self, held: &[Reservation]) {
        Desk::with(self.config.clone()).park(held).await;
    }

    pub(crate) async fn hold(&self, buyers: &[usize]) -> Vec<Reservation> {
        let request = |number: &usize| {
            let buyer: BuyerId = format!("buyer-{number}").parse().expect("a buyer");
            ReserveRequest {
                request_id: RequestId::derive(&buyer, &self.item, &"1".parse().expect("a key")),
                reservation_id: ReservationId::mint(),
                buyer,
                quantity: Quantity::new(1).expect("one"),
            }
        };
        let requests: Vec<_> = buyers.iter().map(request).collect();
        let bucket = Bucket { item: self.item.clone(), number: 0 };
        let layout = Layout { epoch: 1, buckets: BucketCount::ONE };
        let until = Instant::now() + Duration::from_secs(20);
        let reserved = loop {
            match self.stock.reserve(&bucket, layout, &requests).await {
                Ok(reserved) => break reserved,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
        };
        let Reserved::Answered(replies) = reserved else { panic!("the layout is known") };
        let held = |reply| match reply {
            ReserveReply::Held(reservation) => reservation,
            other => panic!("not held: {other:?}"),
        };
        replies.into_iter().map(held).collect()
    }

    pub(crate) fn dlq(&self, arguments: &[&str]) -> Command {
        let mut command = lastunit(&self.config);
        command.arg("dlq").args(arguments);
        command
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        json(self.dlq(arguments).arg("--json"))
    }

    /// How many letters there are, in each state.
    pub(crate) fn states(&self) -> Vec<(String, i64)> {
        let stats = self.json(&["stats"]);
        let reasons = stats["by_reason"].as_array().expect("a list").clone();
        let count = |count: &Value| {
            let state = count["state"].as_str().expect("a state").to_owned();
            (state, count["letters"].as_i64().expect("a count"))
        };
        reasons.iter().map(count).collect()
    }

    /// Waits until nothing is held, and checks the law.
    async fn assert_law(&self) -> u64 {
        let bucket = Bucket { item: self.item.clone(), number: 0 };
        let until = Instant::now() + Duration::from_secs(30);
        let redis = loop {
            let redis = self.stock.snapshot(&bucket).await.expect("Redis").expect("an item");
            if redis.held == 0 {
                break redis;
            }
            assert!(Instant::now() < until, "{} are held", redis.held);
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let items = std::slice::from_ref(&self.item);
        let (_, mut books) = self.ledger.sold_books(items).await.expect("books").remove(0);
        books.redis_available = Some(redis.available);
        assert_eq!(broken_laws(&books), [], "{books:?}");
        books.confirmed_units
    }
}

/// A process that is killed when the test ends.
struct Service(Child);

impl Service {
    fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a process"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_letters_survive_two_operators_and_five_kills() {
    const LETTERS: usize = 1_000;
    let office = Office::selling(LETTERS as u64 + 10).await;
    office.park(LETTERS).await;
    let _consumer = Service::start(lastunit(&office.config).arg("consumer"));
    let _compensator = Service::start(lastunit(&office.config).arg("compensator"));
    // Slow enough that each of them is killed in the middle.
    let arguments = ["replay", "--all", "--rate", "200", "--as", "ann"];
    for _ in 0..5 {
        let sent = office.json(&["stats"])["by_reason"].clone();
        let mut one = Service::start(&mut office.dlq(&arguments));
        let mut other = Service::start(&mut office.dlq(&arguments));
        let until = Instant::now() + Duration::from_secs(20);
        while office.json(&["stats"])["by_reason"] == sent {
            assert!(Instant::now() < until, "nothing is replayed: {sent}");
        }
        one.0.kill().expect("killed");
        other.0.kill().expect("killed");
    }
    // Both go on, side by side, to the end; and then once more.
    for _ in 0..2 {
        let replay = ["replay", "--all", "--rate", "0", "--json", "--as", "bob"];
        let one = office.dlq(&replay).stdout(Stdio::piped()).spawn().expect("a process");
        let other = office.dlq(&replay).stdout(Stdio::piped()).spawn().expect("a process");
        for operator in [one, other] {
            let output = operator.wait_with_output().expect("an end");
            assert!(output.status.success(), "{}", stdout(&output));
        }
        assert_eq!(office.states(), [("replayed".to_owned(), LETTERS as i64)]);
        assert_eq!(office.assert_law().await, LETTERS as u64, "every order once");
    }
    let again = office.json(&["replay", "--all"]);
    assert_eq!((&again["sent"], &again["stopped"]), (&0.into(), &Value::Null));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn letters_are_listed_shown_counted_and_planned() {
    let office = Office::selling(10).await;
    let parked = office.park(3).await;
    let listed = office.json(&["list", "--sort", "oldest"]);
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 3);
    assert!(listed.iter().all(|letter| letter["class"] == "would_confirm"), "{listed:?}");
    let second = parked[1].reservation_id.to_string();
    let page = office.json(&["list", "--sort", "oldest", "--most", "1", "--after", &second]);
    assert_eq!(page.as_array().map(Vec::len), Some(1), "{page}");
    for (filter, count) in [
        (&["--buyer", "buyer-1"][..], 1),
        (&["--item", "shoe"], 3),
        (&["--item", "hat"], 0),
        (&["--reason", "hopeless"], 3),
        (&["--class", "would_confirm"], 3),
        (&["--class", "hold_missing"], 0),
        (&["--text", "NO PLACE"], 3),
        (&["--text", "\"buyer-2\""], 1),
        (&["--fingerprint", "no place for <id>"], 3),
        (&["--since", "1h"], 3),
        (&["--until", "1h"], 0),
        (&["--state", "discarded"], 0),
    ] {
        let listed = office.json(&[&["list"], filter].concat());
        assert_eq!(listed.as_array().map(Vec::len), Some(count), "{filter:?}: {listed}");
    }

    let shown = office.json(&["show", &second]);
    assert_eq!((&shown["hold"]["state"], &shown["order"]), (&"held".into(), &Value::Null));
    assert_eq!(shown["history"][0]["what"], "died");
    assert!(shown["body"].as_str().expect("text").contains(&second), "{shown}");
    let text = stdout(&run(&mut office.dlq(&["show", &second])));
    assert!(text.contains("would_confirm") && text.contains("buyer-1"), "{text}");

    let stats = office.json(&["stats"]);
    assert_eq!(stats["by_error"][0]["fingerprint"], "no place for <id>");
    assert_eq!(stats["by_error"][0]["letters"], 3);

    let plan = office.json(&["plan", "--all"]);
    assert_eq!((&plan["letters"], &plan["units_sold"]), (&3.into(), &3.into()), "{plan}");
    assert_eq!(plan["would"]["confirmed"], 3);
    let table = stdout(&run(&mut office.dlq(&["plan", "--all"])));
    assert!(table.contains("would_confirm") && table.contains("together"), "{table}");
    assert_eq!(office.states(), [("parked".to_owned(), 3)], "looking changes nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discard_by_filter_gives_stock_back_and_is_remembered() {
    let office = Office::selling(10).await;
    let parked = office.park(4).await;
    let by_buyer = ["discard", "--buyer", "buyer-1", "--reason", "Wrong price!", "--as", "ann"];
    let report = office.json(&by_buyer);
    assert_eq!((&report["discarded"], &report["ends"]["restored"]), (&1.into(), &1.into()));
    let shown = office.json(&["show", &parked[1].reservation_id.to_string()]);
    assert_eq!((&shown["state"], &shown["class"]), (&"discarded".into(), &"hold_restored".into()));
    assert_eq!(shown["order"]["state"], "expired:wrong_price");
    assert_eq!(shown["would"], "expired:wrong_price");
    let last = shown["history"].as_array().and_then(|acts| acts.last()).expect("an act");
    assert_eq!((&last["who"], &last["what"]), (&"ann".into(), &"discard".into()));
    assert_eq!(last["outcome"], "restored");
    let report = office.json(&["discard", "--all", "--died-of", "hopeless"]);
    assert_eq!(report["discarded"], 3);
    assert_eq!(office.assert_law().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said_and_changes_nothing() {
    let office = Office::selling(10).await;
    let parked = office.park(2).await;
    let known = parked[0].reservation_id.to_string();
    let ghost = ReservationId::mint().to_string();
    let before = office.json(&["list"]);
    let folder = Folder::new("dlq-wrong");
    let missing = folder.path().join("missing.jsonl").display().to_string();
    let broken = folder.path().join("broken.jsonl");
    std::fs::write(&broken, "{\"id\": \"x\"}\n").expect("a file");
    let broken = broken.display().to_string();
    for (arguments, status, said) in [
        (&["show", &ghost][..], 1, ghost.as_str()),
        (&["plan", &ghost], 1, &ghost),
        (&["replay", &known, &ghost], 1, &ghost),
        (&["discard", &known, &ghost], 1, &ghost),
        (&["export", &ghost], 1, &ghost),
        (&["edit", &ghost, "--set", "epoch=2"], 1, &ghost),
        (&["list", "--after", &ghost], 1, &ghost),
        (&["show", "seven"], 2, "seven"),
        (&["replay"], 2, "--all"),
        (&["discard"], 2, "--all"),
        (&["plan"], 2, "--all"),
        (&["export"], 2, "--all"),
        (&["replay", "--item", "hat"], 1, "no letter fits"),
        (&["discard", "--buyer", "nobody"], 1, "no letter fits"),
        (&["plan", "--reason", "boredom"], 1, "no letter fits"),
        (&["list", "--class", "nonsense"], 2, "would_confirm"),
        (&["list", "--since", "yesterday"], 2, "RFC 3339"),
        (&["list", "--item", "a b"], 2, "item id"),
        (&["replay", "--all", "--stop-at-failures", "7"], 2, "from 0 to 1"),
        (&["replay", "--all", "--canary", "0"], 2, "canary"),
        (&["discard", "--all", "--reason", "!"], 2, "no letter or digit"),
        (&["edit", &known, "--set", "epoch"], 2, "epoch"),
        (&["edit", &known, "--set", "quantity=2"], 1, "quantity"),
        (&["edit", &known, "--set", "colour=red"], 1, "colour"),
        (&["edit", &known, "--from", &missing], 1, "missing.jsonl"),
        (&["import", &missing], 1, "missing.jsonl"),
        (&["import", &broken], 1, "line 1"),
    ] {
        let output = run(office.dlq(arguments).env_remove("EDITOR"));
        let (code, error) = (output.status.code(), stderr(&output));
        assert_eq!(code, Some(status), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?} says {said}: {error}");
    }
    assert_eq!(office.json(&["list"]), before, "nothing has changed");
    let all = office.ledger.count_letters(&LetterFilter::default()).await.expect("a count");
    assert_eq!(all, 2);
    assert_eq!(office.json(&["show", &known])["history"].as_array().map(Vec::len), Some(1));
}
