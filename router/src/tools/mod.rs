//! The operator's tools: `ringmain stat`, `manage` and `top`, which ask a router's management node, and what is
//! generated from the command line (completions, manual pages).
//!
//! ```text
//! options -> stat:   views (entities -> table) -> rates -> table | csv | JSON
//!         -> manage: operation -> request -> JSON;  save (entities -> configuration file)
//!         -> top:    sample -> state -> draw
//! ```
//!
//! Called `qdstat` or `qdmanage` (or `skstat`, `skmanage`), the program prints what scripts written for those
//! read; see [`Called`].

mod docs;
mod format;
mod manage;
mod names;
mod options;
mod problem;
mod rates;
mod router;
mod save;
mod stat;
mod table;
mod top;
mod user;
mod views;

pub use docs::{completions, manual_pages};
pub use manage::manage;
pub use names::Called;
pub use options::{
    CompletionsOptions, ConnectionOptions, ManOptions, ManageOptions, ProgramName, ShowOptions, StatOptions,
    TargetOptions, TopOptions,
};
pub use problem::Problem;
pub use stat::stat;
pub use top::top;
pub use user::{AddUserOptions, ListUsersOptions, RemoveUserOptions, UserAction, UserOptions, user};
