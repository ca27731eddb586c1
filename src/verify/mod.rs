//! Offline rules over a finished image, one file per family. A rule takes the scanned image and returns findings.

pub mod container;
pub mod image;
pub mod ledger;
pub mod scan;
pub mod tls;
pub mod units;

pub use image::Image;
