//! Items: put, found, listed, and shown in the catalog.

use std::time::Duration;

use shared::domain::{Sale, Window};
use shared::ledger::PutOutcome;

use super::{Books, OPENS_AT, confirmed, item_id, reservation, sale};

#[tokio::test]
async fn a_sale_can_be_put_again_and_changed_until_it_is_warm() {
    let books = Books::new().await;
    let put = async |sale: &Sale| books.ledger.put_item(sale, None).await.expect("an answer");
    let first = sale("shoe", 9, Some(2));
    assert_eq!(put(&first).await, PutOutcome::Created);
    let item = books.item("shoe").await;
    assert_eq!((&item.sale, item.available, item.epoch), (&first, 9, 0));
    assert_eq!(put(&first).await, PutOutcome::Unchanged);
    assert_eq!(books.item("shoe").await.version, item.version);

    let later = Window::new(OPENS_AT, OPENS_AT.plus(Duration::from_secs(90)));
    let changes = [
        sale("shoe", 7, Some(2)),
        sale("shoe", 7, None),
        Sale { window: later.expect("a window"), ..sale("shoe", 7, None) },
    ];
    for change in &changes {
        assert_eq!(put(change).await, PutOutcome::Changed);
        let item = books.item("shoe").await;
        assert_eq!((&item.sale, item.available), (change, change.total));
    }
    assert_eq!(books.item("shoe").await.version, item.version + 3);

    books.begin_warm("shoe").await;
    let warm = books.item("shoe").await;
    assert_eq!(put(&changes[2]).await, PutOutcome::Unchanged);
    for fixed in [&changes[0], &sale("shoe", 8, None)] {
        let fixed = Sale { window: warm.sale.window, ..fixed.clone() };
        assert_eq!(put(&fixed).await, PutOutcome::AlreadyWarm(warm.clone()));
    }
    assert_eq!(books.item("shoe").await, warm, "buyers count on them");
    let longer = Window::new(OPENS_AT, OPENS_AT.plus(Duration::from_secs(120)));
    let longer = Sale { window: longer.expect("a window"), ..warm.sale.clone() };
    assert_eq!(put(&longer).await, PutOutcome::Changed);
    let changed = books.item("shoe").await;
    assert_eq!((changed.sale, changed.available), (longer, warm.available));
}

#[tokio::test]
async fn putting_a_sale_again_after_some_were_sold_gives_nothing_back() {
    let books = Books::selling(9, None).await;
    books.begin_warm("shoe").await;
    let sold = reservation("shoe", "ann", "1", 2);
    assert_eq!(books.commit_one(&sold).await, confirmed(&sold));
    let put = books.ledger.put_item(&sale("shoe", 9, None), None).await;
    assert_eq!(put.expect("an answer"), PutOutcome::Unchanged);
    assert_eq!(books.item("shoe").await.available, 7);
}

#[tokio::test]
async fn a_window_keeps_its_milliseconds() {
    let books = Books::new().await;
    let odd = Window::new(
        OPENS_AT.plus(Duration::from_millis(1)),
        OPENS_AT.plus(Duration::from_millis(2)),
    );
    let sale = Sale { window: odd.expect("a window"), ..sale("shoe", 1, None) };
    books.ledger.put_item(&sale, None).await.expect("an answer");
    assert_eq!(books.item("shoe").await.sale, sale);
    let again = books.ledger.put_item(&sale, None).await.expect("an answer");
    assert_eq!(again, PutOutcome::Unchanged);
}

#[tokio::test]
async fn items_are_listed_in_pages_by_their_bytes() {
    let books = Books::new().await;
    // Byte order: capitals come before small letters, and a digit before both.
    let sorted = ["1", "A", "B", "a", "a-1", "a.1", "a_1", "b"];
    for item in sorted.iter().rev() {
        books.put(item, 1, None).await;
    }
    for most in [1, 3, 8, 100] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = books.ledger.list_items(after.as_ref(), most).await.expect("an answer");
            assert!(page.len() <= most as usize);
            let Some(last) = page.last() else { break };
            after = Some(last.sale.item.clone());
            seen.extend(page.into_iter().map(|item| item.sale.item.to_string()));
        }
        assert_eq!(seen, sorted, "in pages of {most}");
    }
    assert_eq!(books.ledger.find_item(&item_id("c")).await.expect("an answer"), None);
}

#[tokio::test]
async fn the_catalog_shows_what_changed_since_it_was_read() {
    let books = Books::selling(9, None).await;
    let all = books.ledger.catalog(None).await.expect("an answer");
    let names = |page: &shared::ledger::CatalogPage| -> Vec<String> {
        page.items.iter().map(|item| item.sale.item.to_string()).collect()
    };
    assert_eq!(names(&all), ["shoe"]);

    // The last 30 s are read again, so nothing that commits late is missed.
    books.put("hat", 1, None).await;
    let changed = books.ledger.catalog(Some(all.read_at)).await.expect("an answer");
    assert!(names(&changed).contains(&"hat".to_owned()), "{changed:?}");
    assert!(changed.read_at >= all.read_at);

    let much_later = changed.read_at + chrono::TimeDelta::seconds(31);
    let nothing = books.ledger.catalog(Some(much_later)).await.expect("an answer");
    assert_eq!(names(&nothing), [""; 0]);

    let before = books.ledger.catalog(None).await.expect("an answer").read_at;
    let epoch = books.begin_warm("shoe").await;
    // Everything else changed more than 30 s before this point of view.
    let since = before + chrono::TimeDelta::seconds(30);
    let changed = books.ledger.catalog(Some(since)).await.expect("an answer");
    assert_eq!(names(&changed), ["shoe"], "the epoch is one of its terms");
    assert_eq!(changed.items[0].epoch, epoch);

    let sold = reservation("shoe", "ann", "1", 1);
    let since = books.ledger.catalog(None).await.expect("an answer").read_at
        + chrono::TimeDelta::seconds(30);
    books.commit_one(&sold).await;
    let changed = books.ledger.catalog(Some(since)).await.expect("an answer");
    assert_eq!(names(&changed), [""; 0], "stock that was sold is not");
}
