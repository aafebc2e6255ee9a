//! What the schema itself refuses, whoever writes.

use super::{Books, item_id, reservation};

/// An order as commit writes it, with one column changed.
fn order(item: &str, buyer: &str, reason: &str) -> String {
    format!(
        "INSERT INTO orders (request_id, reservation_id, item_id, buyer_id, quantity, state, reason, epoch)
         VALUES (gen_random_uuid(), gen_random_uuid(), '{item}', '{buyer}', 1, 'rejected', '{reason}', 1)"
    )
}

#[tokio::test]
async fn an_order_names_an_item_that_exists() {
    let books = Books::selling(5, None).await;
    books.ledger.meddle(&order("shoe", "ann", "sold_out")).await.expect("an order");
    // Beside good ones, as in a batch.
    let batch = format!(
        "{}, (gen_random_uuid(), gen_random_uuid(), 'hat', 'bob', 1, 'rejected', 'sold_out', 1)",
        order("shoe", "bob", "sold_out")
    );
    let error = books.ledger.meddle(&batch).await.expect_err("there is no hat");
    assert!(error.to_string().contains("an order names an item that does not exist"), "{error}");
    assert!(error.is_permanent(), "a batch with such an order is split until it stands alone");
    let error = books.ledger.meddle("UPDATE orders SET item_id = 'hat'").await;
    assert!(error.expect_err("nor by a change").is_permanent());
    assert_eq!(books.count("shoe").await.rejected, 1);
}

#[tokio::test]
async fn an_item_that_has_orders_stays() {
    let books = Books::selling(5, None).await;
    books.put("hat", 1, None).await;
    books.commit_one(&reservation("shoe", "ann", "1", 1)).await;
    for statement in [
        "DELETE FROM items WHERE item_id = 'shoe'",
        "UPDATE items SET item_id = 'sock' WHERE item_id = 'shoe'",
    ] {
        let error = books.ledger.meddle(statement).await.expect_err("it has orders").to_string();
        assert!(error.contains("an item that has orders stays"), "{error}");
    }
    books.ledger.meddle("DELETE FROM items WHERE item_id = 'hat'").await.expect("it has none");
    assert!(books.ledger.find_item(&item_id("hat")).await.expect("an answer").is_none());
}

#[tokio::test]
async fn an_id_that_breaks_its_rule_is_in_no_row() {
    let books = Books::selling(5, None).await;
    let (longest, too_long) = ("x".repeat(64), "x".repeat(65));
    for good in ["a", "A.b_c-9", &longest] {
        books.ledger.meddle(&order("shoe", good, "a_1")).await.expect(good);
    }
    for bad in ["", "a b", "a\n", "ä", &too_long] {
        assert!(books.ledger.meddle(&order("shoe", bad, "a_1")).await.is_err(), "{bad:?}");
    }
    for bad in ["", "A", "a-b", "a\n", &too_long] {
        assert!(books.ledger.meddle(&order("shoe", "ann", bad)).await.is_err(), "{bad:?}");
    }
    books.put("hat", 1, None).await;
    for bad in ["", "a b", &too_long] {
        let item = format!("UPDATE items SET item_id = '{bad}' WHERE item_id = 'hat'");
        assert!(books.ledger.meddle(&item).await.is_err(), "{bad:?}");
    }
}
