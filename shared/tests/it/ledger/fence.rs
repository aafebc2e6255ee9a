//! Fences of items only rise.

use futures_util::future::join_all;

use super::{Books, item_id};

#[tokio::test]
async fn a_fence_is_claimed_once_and_never_below_another() {
    let books = Books::selling(5, None).await;
    let (ledger, shoe) = (&books.ledger, item_id("shoe"));
    let claim = async |fence| ledger.claim_fence(&shoe, fence).await.expect("an answer");
    assert_eq!(ledger.fence(&shoe).await.expect("an answer"), Some(0));
    assert!(claim(7).await);
    assert!(!claim(7).await, "the same is not higher");
    assert!(!claim(6).await);
    assert_eq!(ledger.fence(&shoe).await.expect("an answer"), Some(7));
    // Of many at once, the highest stays, and whoever claimed it knows.
    let claims = join_all((8..40).map(claim)).await;
    assert!(claims.last().expect("claims"));
    assert_eq!(ledger.fence(&shoe).await.expect("an answer"), Some(39));
    books.balance("shoe").await;
}

#[tokio::test]
async fn an_item_that_does_not_exist_has_no_fence() {
    let books = Books::new().await;
    let ghost = item_id("ghost");
    assert_eq!(books.ledger.fence(&ghost).await.expect("an answer"), None);
    assert!(!books.ledger.claim_fence(&ghost, 1).await.expect("an answer"));
}
