//! The marker file of one process: a header with the process's name, then one slot for each concurrent computation. The process holds a lock on the
//! file, so that another one can tell whether it lives.

use leasehold_core::ExecutionId;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use uuid::Uuid;

/// The first bytes of a marker file.
const MAGIC: &[u8] = b"leasehold crash markers 1\n";
/// Bytes before the first slot: the magic, the name of the process, zeros.
const HEADER_BYTES: usize = 512;
/// Bytes of a slot: whether it is marked, the execution, zeros.
const SLOT_BYTES: usize = 32;
const MARKED: u8 = 1;
/// Slots written when the file is created. Further ones extend the file.
const FIRST_SLOTS: usize = 64;
/// The most bytes read of another process's file.
const READ_MAX_BYTES: u64 = 1024 * 1024;
/// The start of a file's name before it is complete.
const DRAFT: char = '.';

/// The locked marker file of this process. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct MarkerFile {
    file: File,
    path: PathBuf,
    slots: Mutex<Slots>,
    has_failed: AtomicBool,
}

/// The slots that are not in use.
#[derive(Debug, Default)]
struct Slots {
    free: Vec<u64>,
    next: u64,
}

/// A marked slot. Dropping it clears the slot.
pub(crate) struct Marker<'a> {
    file: &'a MarkerFile,
    slot: u64,
}

impl MarkerFile {
    /// Creates the file, readable by its owner only. It gets its name after it is locked: an unlocked file belongs to a dead process.
    pub(crate) fn create(dir: &Path, process: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let name = unique_name();
        let (path, draft) = (dir.join(&name), dir.join(format!("{DRAFT}{name}")));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        let publish = || {
            file.try_lock().map_err(io::Error::from)?;
            file.write_all_at(&header(process), 0)?;
            file.write_all_at(&[0; FIRST_SLOTS * SLOT_BYTES], HEADER_BYTES as u64)?;
            fs::rename(&draft, &path)
        };
        if let Err(error) = publish() {
            // The first error is the one to report.
            let _ = fs::remove_file(&draft);
            return Err(error);
        }
        Ok(Self {
            file,
            path,
            slots: Mutex::default(),
            has_failed: AtomicBool::new(false),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Marks an execution in a free slot.
    pub(crate) fn mark(&self, execution: ExecutionId) -> Marker<'_> {
        let slot = self.slots().take();
        let mut bytes = [0; SLOT_BYTES];
        bytes[0] = MARKED;
        bytes[1..17].copy_from_slice(execution.0.as_bytes());
        self.write(slot, &bytes);
        Marker { file: self, slot }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes into a slot. A computation that cannot be marked runs unmarked: a full disk must not stop it.
    fn write(&self, slot: u64, bytes: &[u8]) {
        let at = HEADER_BYTES as u64 + slot * SLOT_BYTES as u64;
        if let Err(error) = self.file.write_all_at(bytes, at)
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            let file = self.path.display();
            tracing::warn!(%error, %file, "failed to write a crash marker; a crash may not be counted");
        }
    }
}

impl Drop for MarkerFile {
    fn drop(&mut self) {
        // If this fails, the next start finds no marker in the file and removes it.
        let _ = fs::remove_file(&self.path);
    }
}

impl Slots {
    fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.next;
            self.next += 1;
            slot
        })
    }
}

impl Drop for Marker<'_> {
    fn drop(&mut self) {
        self.file.write(self.slot, &[0]);
        self.file.slots().free.push(self.slot);
    }
}

/// A process that ended while it computed inputs.
#[derive(Debug)]
pub struct CrashedProcess {
    /// Its unique name.
    pub process: String,
    /// The executions whose inputs it was computing, in any order; never empty.
    pub executions: Vec<ExecutionId>,
    path: PathBuf,
    /// Held, so that no other process reads the same markers meanwhile.
    _locked: File,
}

impl CrashedProcess {
    /// Removes the markers, once the crash is noted.
    ///
    /// # Errors
    /// The file cannot be removed; the next start reads it again.
    pub fn forget(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// Finds the processes that left markers in `dir`, and removes files without markers. Skips `own` and the files of live processes.
pub(crate) fn crashed_processes(dir: &Path, own: &Path) -> io::Result<Vec<CrashedProcess>> {
    let mut crashed = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let is_draft = entry.file_name().to_string_lossy().starts_with(DRAFT);
        if path == own || is_draft || !entry.file_type()?.is_file() {
            continue;
        }
        if let Some(found) = crashed_process(path)? {
            crashed.push(found);
        }
    }
    Ok(crashed)
}

fn crashed_process(path: PathBuf) -> io::Result<Option<CrashedProcess>> {
    let mut file = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        // Its process has just ended.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let mut bytes = Vec::new();
    file.by_ref().take(READ_MAX_BYTES).read_to_end(&mut bytes)?;
    // Another file: leave it.
    let Some((process, executions)) = parse(&bytes) else {
        return Ok(None);
    };
    if executions.is_empty() {
        fs::remove_file(&path)?;
        return Ok(None);
    }
    Ok(Some(CrashedProcess {
        process,
        executions,
        path,
        _locked: file,
    }))
}

/// Reads the name of the process and the marked executions; none if this is not a complete marker file.
pub(crate) fn parse(bytes: &[u8]) -> Option<(String, Vec<ExecutionId>)> {
    let (header, slots) = bytes.split_at_checked(HEADER_BYTES)?;
    let name = header.strip_prefix(MAGIC)?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let process = std::str::from_utf8(name).ok()?.to_owned();
    let mut executions: Vec<ExecutionId> = slots
        .chunks_exact(SLOT_BYTES)
        .filter(|slot| slot[0] == MARKED)
        .filter_map(|slot| Uuid::from_slice(&slot[1..17]).ok())
        .map(ExecutionId)
        .collect();
    executions.sort_unstable();
    executions.dedup();
    Some((process, executions))
}

/// Builds the header; a name that is too long is cut.
pub(crate) fn header(process: &str) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..MAGIC.len()].copy_from_slice(MAGIC);
    let room = HEADER_BYTES - MAGIC.len() - 1;
    let name = &process[..process.floor_char_boundary(room)];
    header[MAGIC.len()..MAGIC.len() + name.len()].copy_from_slice(name.as_bytes());
    header
}

/// A name that no other file has: process id, time and a count.
fn unique_name() -> String {
    static CREATED: AtomicU64 = AtomicU64::new(0);
    let created = CREATED.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let micros = time.unwrap_or_default().as_micros();
    format!("{}-{micros}-{created}", std::process::id())
}
