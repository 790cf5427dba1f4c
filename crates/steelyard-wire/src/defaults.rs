//! Defaults of fields, which are not written.

// serde hands references to these.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
