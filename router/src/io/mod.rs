//! Input and output: the driver's contract, io_uring behind it, and a simulated twin.

#[cfg(test)]
mod contract;
pub mod driver;
pub mod sim;
pub mod uring;
