//! Steps of the pipeline on their own, through the product's own windows.

pub mod backlog;
pub mod burst;
pub mod deciding;
pub mod meter;
pub mod taking;
