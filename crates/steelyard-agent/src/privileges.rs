//! Privileges of a server: none. It runs as the user of its node, which may be root, but without root's capabilities.

use rustix::io::{Errno, Result};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

const CAPABILITY_BITS: u32 = u64::BITS;

/// Gives up every capability for good: empties all sets of this thread, and lets no program executed later gain any, not even
/// by being root's. Allocates nothing, as is right between fork and exec.
pub(crate) fn give_up_all() -> Result<()> {
    clear_ambient_capability_set()?;
    for bit in 0..CAPABILITY_BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(capability) {
            // The kernel knows no more.
            Err(Errno::INVAL) => break,
            Ok(false) => {}
            Ok(true) => match remove_capability_from_bounding_set(capability) {
                // Without CAP_SETPCAP the set stays, but there is nothing to gain by it without new privileges.
                Ok(()) | Err(Errno::PERM) => {}
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        }
    }
    let none = CapabilitySet::empty();
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )?;
    set_no_new_privs(true)
}
