//! CPU time as the kernel counts it. Unlike elapsed time, it does not depend on other load on the machine. Linux only; none elsewhere.

use std::fs;

/// Ticks per second in /proc/PID/stat.
const TICKS_A_SECOND: f64 = 100.0;

/// A process's parent and CPU times, in ticks.
struct Process {
    parent: u32,
    own: u64,
    /// CPU time of ended children.
    ended: u64,
}

/// Returns the CPU seconds of this process.
pub(crate) fn own_seconds() -> Option<f64> {
    Some(read("self")?.own as f64 / TICKS_A_SECOND)
}

/// Returns the CPU seconds of a process and its children, ended ones included.
pub(crate) fn tree_seconds(parent: u32) -> Option<f64> {
    let head = read(&parent.to_string())?;
    let mut ticks = head.own + head.ended;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // The process may have ended meanwhile.
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
    // The program name may contain spaces and ends at the last bracket; field 3 follows.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Process {
        parent: u32::try_from(field(4)?).ok()?,
        own: field(14)? + field(15)?,
        ended: field(16)? + field(17)?,
    })
}
