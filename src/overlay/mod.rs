//! Overlays over a base: render, edit, set unit states, merge into the tree, and keep the ledger.

pub mod ledger;
