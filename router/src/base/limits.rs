//! Every maximum of the router, with its consequence in memory.
