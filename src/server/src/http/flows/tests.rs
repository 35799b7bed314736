//! The routes that open flows, on a whole node with an upstream that does what a test wants.
