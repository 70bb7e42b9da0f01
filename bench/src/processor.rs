//! Processor time as the kernel counts it: unlike elapsed time, it says the same on a machine that others use as well. Linux only; none elsewhere.

use std::fs;

/// The kernel counts in hundredths of a second for programs that ask this way.
const TICKS_A_SECOND: f64 = 100.0;

/// One process's parent and times, in ticks.
struct Process {
    parent: u32,
    own: u64,
    /// Of the children that have ended.
    ended: u64,
}

/// Seconds that this process has used.
pub(crate) fn of_this_process() -> Option<f64> {
    Some(read("self")?.own as f64 / TICKS_A_SECOND)
}

/// Seconds that a process and its children have used, those that have ended included.
pub(crate) fn of_family(parent: u32) -> Option<f64> {
    let head = read(&parent.to_string())?;
    let mut ticks = head.own + head.ended;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // A process may end while it is looked at.
        if let Some(process) = read(&name)
            && process.parent == parent
        {
            ticks += process.own;
        }
    }
    Some(ticks as f64 / TICKS_A_SECOND)
}

fn read(process: &str) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program's name may hold spaces; it ends with the last bracket. What follows begins with field 3.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Process {
        parent: u32::try_from(field(4)?).ok()?,
        own: field(14)? + field(15)?,
        ended: field(16)? + field(17)?,
    })
}
