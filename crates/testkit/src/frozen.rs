//! A frozen server: all its processes are stopped, but its sockets stay open and the kernel acknowledges what arrives. Linux only.

use std::fs;
use std::process::Command;

/// Keeps the processes of a server stopped; dropping it lets them go on.
pub struct FrozenServer {
    processes: Vec<String>,
}

impl FrozenServer {
    /// Stops the process and its children.
    pub(crate) fn freeze(server: u32) -> Self {
        let server = server.to_string();
        let mut processes = vec![server.clone()];
        // The server first: it must not start more children.
        signal("-STOP", &processes);
        let children = children(&server);
        signal("-STOP", &children);
        processes.extend(children);
        Self { processes }
    }
}

impl Drop for FrozenServer {
    fn drop(&mut self) {
        signal("-CONT", &self.processes);
    }
}

fn children(parent: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    let is_child = |name: &String| {
        let status = fs::read_to_string(format!("/proc/{name}/status")).unwrap_or_default();
        let parent_line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
        parent_line.is_some_and(|found| found.trim() == parent)
    };
    names.filter(is_child).collect()
}

fn signal(signal: &str, processes: &[String]) {
    if !processes.is_empty() {
        // A child may have exited meanwhile.
        let _ = Command::new("kill").arg(signal).args(processes).status();
    }
}
