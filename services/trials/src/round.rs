//! One round of the soak: a short sale in a world of its own, while things go wrong.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shared::domain::{Books, broken_laws, partition};
use shared::ledger::Ledger;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::auditor::{Auditor, Purchase, Tally, Terms};
use crate::crowd::{Scene, Wish, ask_everybody, buy_all, wishes};
use crate::faults::{Planned, schedule};
use crate::grounds::Grounds;
use crate::injection::Site;
use crate::line::{Line, limited, until_ready};
use crate::meddler::Meddler;
use crate::messages::request_id;
use crate::processes::{Fleet, Manning};

const ITEM: &str = "shoe";
const LIMIT: u64 = 4;

/// How long after everything is whole again every purchase must be final and nothing held.
pub const SETTLED_WITHIN: Duration = Duration::from_secs(60);

/// How long the last question to everybody may take; nothing is broken then.
const JUDGED_WITHIN: Duration = Duration::from_secs(30);

/// How often it is asked whether something is still held.
const POLL: Duration = Duration::from_millis(25);

/// What a round is made of; the same plan is the same round, but for the races it is about.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    /// Chosen by the seed when not said.
    pub buyers: Option<u32>,
    /// How long people come and things go wrong.
    pub lasts: Duration,
    pub first_look: Duration,
    /// The binary `trial`.
    pub program: PathBuf,
    /// Where the services of this round write their logs.
    pub dir: PathBuf,
}

/// How a round went.
#[derive(Debug, Clone)]
pub struct Report {
    pub tally: Tally,
    /// From the moment when everything was whole again.
    pub settled_after: Duration,
    pub took: Duration,
    /// Everything that is wrong; nothing, in a round that went well.
    pub violations: Vec<String>,
}

impl Plan {
    pub fn faults(&self) -> Vec<Planned> {
        schedule(self.seed, self.lasts)
    }

    fn wishes(&self) -> Vec<Wish> {
        let buyers = self.buyers.unwrap_or(60 + u32::try_from(self.seed % 61).unwrap_or_default());
        wishes(self.seed, buyers, self.lasts)
    }

    /// Fewer units than people want.
    fn terms(&self, wishes: &[Wish]) -> Terms {
        let wanted: u64 = wishes.iter().map(|wish| u64::from(wish.purchase.quantity)).sum();
        // From too few for half of them to nearly enough for all.
        let tenths = 4 + self.seed % 6;
        Terms { total: (wanted * tenths / 10).max(1), limit_per_buyer: LIMIT }
    }

    /// Lets it happen, and judges it.
    pub async fn run(&self, grounds: &Arc<Grounds>) -> Report {
        let begun = Instant::now();
        let (faults, wishes) = (self.faults(), self.wishes());
        let terms = self.terms(&wishes);
        let sale = limited(ITEM, terms.total, terms.limit_per_buyer);
        let line = Line::on(&grounds.endpoints).await;
        line.sell(&sale).await;
        let fleet = Fleet::man(Manning {
            program: &self.program,
            dir: &self.dir,
            first_look: self.first_look,
            config: &line.config,
        });
        let purchases = wishes.iter().map(|wish| wish.purchase.clone()).collect();
        let site = Site {
            meddler: Meddler::of(&line, &sale.item, purchases).await,
            fleet: fleet.await,
            grounds: Arc::clone(grounds),
            namespace: line.config.namespace.to_string(),
            partition: partition(&sale.item, line.config.rabbitmq.partitions),
        };
        site.fleet.every(|process| process.start(None)).await;
        for ingress in site.fleet.ingresses() {
            until_ready(ingress).await;
        }

        let scene = Scene {
            item: ITEM.to_owned(),
            ingresses: site.fleet.ingresses(),
            enough: CancellationToken::new(),
        };
        let judging = Scene { enough: CancellationToken::new(), ..scene.clone() };
        let opened = Instant::now();
        let crowd = {
            let (scene, wishes) = (scene.clone(), wishes.clone());
            tokio::spawn(async move { buy_all(&scene, &wishes, opened).await })
        };
        let mut violations = site.suffer(&faults, opened).await;
        site.heal().await;
        let healed = Instant::now();

        let _bound = cancel_after(SETTLED_WITHIN, scene.enough.clone());
        let mut heard = crowd.await.expect("no buyer panics");
        violations.extend(until_nothing_is_held(&line, &sale.item, healed).await);
        let settled_after = healed.elapsed();
        let _bound = cancel_after(JUDGED_WITHIN, judging.enough.clone());
        heard.extend(ask_everybody(&judging, &wishes).await);

        let auditor = Auditor::new(terms, heard, site.meddler.asked_back());
        violations.extend(auditor.judge());
        let books = line.books(&sale.item).await;
        violations.extend(laws(&books));
        violations.extend(compare(&auditor, &line, &wishes).await);
        // In good order, which is itself part of the trial.
        site.fleet.every(|process| process.stop()).await;
        violations.extend(site.fleet.misdeeds().into_iter().filter(|misdeed| {
            // It refuses to give back what is sold: right, if somebody has asked for that.
            !misdeed.contains("refused") || site.meddler.asked_back().is_empty()
        }));
        tidy_up(grounds, line).await;
        Report { tally: auditor.tally(), settled_after, took: begun.elapsed(), violations }
    }
}

/// Dropping it lets the token live.
fn cancel_after(bound: Duration, token: CancellationToken) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(async move {
        sleep(bound).await;
        token.cancel();
    }))
}

async fn until_nothing_is_held(
    line: &Line,
    item: &shared::domain::ItemId,
    healed: Instant,
) -> Option<String> {
    loop {
        let held = line.snapshot(item).await.held;
        if held == 0 {
            return None;
        }
        if healed.elapsed() > SETTLED_WITHIN {
            return Some(format!("{held} holds are held {SETTLED_WITHIN:?} after the last fault"));
        }
        sleep(POLL).await;
    }
}

fn laws(books: &Books) -> Vec<String> {
    broken_laws(books).iter().map(ToString::to_string).collect()
}

async fn compare(auditor: &Auditor, line: &Line, wishes: &[Wish]) -> Vec<String> {
    let item = ITEM.parse().expect("an item");
    let id_of = |purchase: &Purchase| request_id(&item, &purchase.buyer, &purchase.key);
    let ids: Vec<_> = wishes.iter().map(|wish| id_of(&wish.purchase)).collect();
    let orders = line.ledger.find_orders(&ids).await.expect("the orders");
    let counts = line.ledger.count_orders(&item).await.expect("the orders");
    auditor.compare(id_of, &orders, &counts)
}

/// The backends stay as quick as they were. What cannot be removed goes with them.
async fn tidy_up(grounds: &Arc<Grounds>, line: Line) {
    let _ = grounds.does(Grounds::tidy_up).await;
    line.ledger.close().await;
    let mut config = line.config.ledger.clone();
    let name = config.url.expose().rsplit('/').next().unwrap_or_default().to_owned();
    config.url = grounds.endpoints.ledger_url.parse().expect("a URL");
    let beside = Ledger::connect(&config).expect("a ledger");
    let _ = beside.meddle(&format!("DROP DATABASE {name} WITH (FORCE)")).await;
    beside.close().await;
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { purchases, accepted, confirmed, expired, refused } = self.tally;
        write!(
            f,
            "purchases {purchases}  accepted {accepted}  confirmed {confirmed}  expired {expired}  \
             refused {refused}  \
             settled after {:.1} s  took {:.1} s",
            self.settled_after.as_secs_f32(),
            self.took.as_secs_f32()
        )
    }
}
