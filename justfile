# What CI runs, and its parts.

# Everything that CI runs.
ci:
    .ci/run

# The tests alone.
test:
    cargo test --workspace --locked

# The tests that take minutes.
long:
    cargo test --workspace --locked -- --ignored

# Formatting, lints and documentation, warnings denied.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Writes again what is generated and committed: guest bindings, policy descriptors, what the examples' sessions answer.
bless:
    BLESS=1 cargo test -p runwarden-kit --test bindings
    BLESS=1 cargo test -p runwarden-bundled
    BLESS=1 cargo test -p runwarden --test it -- examples::readmes guide::

# Figures beside their floors.
bench:
    cargo run --release -p runwarden-benches
