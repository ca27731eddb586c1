//! Bootstrap: the registry brought to what the declaration wants. What is wanted ([`wanted`]) and what is there
//! ([`current`]) give a list of changes ([`plan`]); they are carried out one after the other ([`apply`]). An interrupted
//! bootstrap is finished by another one: the plan is always of what is still missing.

pub mod apply;
pub mod change;
pub mod current;
pub mod plan;
pub mod read;
pub mod rules;
pub mod wanted;

pub use change::Change;
pub use current::{Current, Permission, Stored};
pub use rules::RULES;
pub use wanted::Wanted;
