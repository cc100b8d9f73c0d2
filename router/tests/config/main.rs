//! The configuration from outside: files as users of `qdrouterd` write them, started from and broken, the
//! command line, the schema beside recordings of routers, and the documentation.

mod broken;
mod daemon;
mod documents;
mod program;
mod recorded;
mod reload;
mod started;
