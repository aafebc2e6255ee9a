//! Finishes transfers of units between buckets that whoever began them did not.

use std::time::Duration;

use shared::config::limits::TRANSFER_BATCH;
use shared::crash;
use shared::stock::{Bucket, Stock, StockError};

/// Finishes what left this bucket at least so long ago: units that have come are forgotten here, all
/// others go back and can never come any more. Safe beside whoever else does it, the one who began the
/// transfer included.
pub(crate) async fn finish_transfers(
    stock: &Stock,
    donor: &Bucket,
    age: Duration,
) -> Result<(), StockError> {
    loop {
        let transfers = stock.read_transfers(donor, age).await?;
        for transfer in &transfers {
            let home = Bucket { item: donor.item.clone(), number: transfer.home };
            let came = stock.transfer_came(&home, transfer).await?;
            crash::point("reconciler.transfer");
            tracing::info!(item = %donor.item, from = donor.number, to = home.number,
                units = transfer.units, came, "finished a transfer");
            if came {
                stock.transfer_done(donor, transfer).await?;
            } else {
                stock.transfer_back(donor, transfer).await?;
            }
        }
        if transfers.len() < TRANSFER_BATCH {
            return Ok(());
        }
    }
}
