//! `ringmain send` and `ringmain receive`: small clients on the router's own codec and engine.

mod options;
mod url;

pub use options::{OutcomeChoice, Print, Property, ReceiveOptions, SendOptions, Timeout};
pub use url::Target;
