//! Bindings of WIT 0.1, generated: the only types of it in the host.
//!
//! The world named here exists for the generator alone. No component is instantiated as a world: each exported interface
//! is found by its name and version, so that optional ones may be absent.

#![allow(missing_docs, clippy::all, reason = "generated code")]

wasmtime::component::bindgen!({
    inline: "
        package runwarden:bindings@0.1.0;
        world everything {
            import runwarden:host/diagnostics@0.1.0;
            export runwarden:policy/lifecycle@0.1.0;
            export runwarden:policy/guard@0.1.0;
            export runwarden:policy/execution@0.1.0;
            export runwarden:policy/health@0.1.0;
            export runwarden:policy/migrate@0.1.0;
            export runwarden:notify/notifier@0.1.0;
        }
    ",
    path: ["../wit/types", "../wit/host", "../wit/policy", "../wit/notify"],
    world: "runwarden:bindings/everything",
});
