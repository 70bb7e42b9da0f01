//! The environment variables of Leasehold that a program started by it must not get.

use std::ffi::{OsStr, OsString};

/// The variables of the connection flags that hold a key or name its file.
const KEY_VARIABLES: [&str; 2] = ["LEASEHOLD_KEY", "LEASEHOLD_KEY_FILE"];
/// Every setting, some of which hold secrets: the URL of the store with its password, the API key of Temporal.
const SETTING_PREFIX: &str = "LEASEHOLD__";

/// Returns the variables of this process that hold or may hold a secret of Leasehold: the key, and every setting.
pub fn private_variables() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| is_private(name)).collect()
}

/// Compares without case, because the names of settings are read so.
fn is_private(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    name.starts_with(SETTING_PREFIX) || KEY_VARIABLES.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_settings_are_private() {
        for (name, private) in [
            ("LEASEHOLD_KEY", true),
            ("LEASEHOLD_KEY_FILE", true),
            ("LEASEHOLD__STORE__URL", true),
            ("leasehold__Temporal__Api_Key", true),
            ("LEASEHOLD_SERVER", false),
            ("LEASEHOLD_WORKSPACE", false),
            ("PATH", false),
        ] {
            assert_eq!(is_private(OsStr::new(name)), private, "{name}");
        }
    }
}
