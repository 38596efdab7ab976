//! Which variables of a build script the inner cargo must not see.

/// Set by the outer cargo for the compiler or for this build script, or settings of the outer build.
const REMOVED: &[&str] = &[
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_TARGET_DIR",
    "CARGO_TARGET_TMPDIR",
    "DEBUG",
    "HOST",
    "NUM_JOBS",
    "OPT_LEVEL",
    "OUT_DIR",
    "PROFILE",
    "RUSTC_LINKER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "TARGET",
];

/// Families of such variables.
const REMOVED_PREFIXES: &[&str] = &[
    "CARGO_BUILD_",
    "CARGO_CFG_",
    "CARGO_CRATE_",
    "CARGO_FEATURE_",
    "CARGO_PKG_",
    "CARGO_PROFILE_",
    "DEP_",
];

/// Whether the inner cargo must not see the variable.
pub(crate) fn is_removed(name: &str) -> bool {
    let flags_of_a_target = name.starts_with("CARGO_TARGET_") && name.ends_with("_RUSTFLAGS");
    flags_of_a_target || REMOVED.contains(&name) || REMOVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_removed;

    #[test]
    fn settings_of_the_outer_build_are_removed() {
        for name in [
            "RUSTFLAGS",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WORKSPACE_WRAPPER",
            "CARGO_BUILD_TARGET",
            "CARGO_PROFILE_DEV_OPT_LEVEL",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
        ] {
            assert!(is_removed(name), "{name}");
        }
    }

    #[test]
    fn what_the_machine_needs_is_passed_on() {
        for name in [
            "CARGO",
            "CARGO_HOME",
            "CARGO_MAKEFLAGS",
            "CARGO_NET_OFFLINE",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
            "PATH",
            "RUSTC",
            "RUSTC_WRAPPER",
            "RUSTUP_TOOLCHAIN",
        ] {
            assert!(!is_removed(name), "{name}");
        }
    }
}
