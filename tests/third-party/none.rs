//! Empty: cargo wants a target to read a manifest; only the dependencies' unpacked sources are used.
