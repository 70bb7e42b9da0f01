//! The fixed limits of the domain. Limits that an operator can change are settings and stand elsewhere.

/// Highest concurrency limit of a workspace.
pub const CONCURRENCY_MAX: u32 = 100_000;
/// Bytes of a request's params as JSON text.
pub const PARAMS_MAX_BYTES: usize = 256 * 1024;
/// How deep a JSON document may nest.
pub const JSON_MAX_DEPTH: usize = 64;
/// Lowest and highest priority of a request.
pub const PRIORITY_RANGE: std::ops::RangeInclusive<i16> = -1000..=1000;
/// Requests one enqueue call may carry.
pub const ENQUEUE_MAX_REQUESTS: usize = 10_000;
/// Characters of an idempotency key.
pub const IDEMPOTENCY_KEY_MAX_CHARS: usize = 255;
/// Longest deduplication window of an idempotency key, in days.
pub const DEDUPE_WINDOW_MAX_DAYS: u32 = 366;
/// Characters of the name of a workspace, a definition, an owner or a named lock.
pub const NAME_MAX_CHARS: usize = 200;
/// Characters of the name of a lock: the width of the column that Java's ShedLock uses.
pub const LOCK_NAME_MAX_CHARS: usize = 64;
/// Largest claim batch: requests one claim may take.
pub const CLAIM_MAX_BATCH: u32 = 1_000;
/// Rows one page of a list may hold.
pub const PAGE_MAX: u32 = 1_000;
/// Requests one recovery or bulk redrive call may change; pruning takes fewer, because claims wait for it.
pub const SWEEP_MAX_BATCH: u32 = 10_000;
/// Characters kept of an error message.
pub const ERROR_MAX_CHARS: usize = 4_000;
/// Characters kept of a caller's trace context.
pub const TRACE_CONTEXT_MAX_CHARS: usize = 1_024;
/// Nodes of a graph.
pub const GRAPH_MAX_NODES: usize = 1_000;
/// Edges of a graph.
pub const GRAPH_MAX_EDGES: usize = 5_000;
/// Bytes of a graph as JSON text; with the params it stays under Temporal's payload limit of 2 MB.
pub const GRAPH_MAX_BYTES: usize = 1024 * 1024;
/// Characters of a node's id, a queue's name, a workflow type or a task queue.
pub const NODE_ID_MAX_CHARS: usize = 128;
/// Longest pause of a `delay` node in milliseconds: a year.
pub const DELAY_MAX_MS: u64 = 366 * 86_400_000;
/// Bytes of JSON of a node's input.
pub const NODE_INPUT_MAX_BYTES: usize = PAYLOAD_MAX_BYTES - 1024;
/// Bytes of JSON of the inputs of all nodes of an execution that start in one step.
pub const STEP_MAX_BYTES: usize = 32 * 1024 * 1024;
/// Bytes of JSON of node outputs that one response contains; larger outputs are omitted.
pub const NODE_OUTPUTS_MAX_BYTES: u32 = 4 * 1024 * 1024;
/// Headers an `http` node may send.
pub const NODE_MAX_HEADERS: usize = 64;
/// Characters in one header's value.
pub const HEADER_MAX_CHARS: usize = 8_192;
/// Characters of the URL that an `http` node calls.
pub const URL_MAX_CHARS: usize = 8_192;
/// Bytes of a version's params schema.
pub const SCHEMA_MAX_BYTES: usize = 64 * 1024;
/// Jobs one enqueue call may carry.
pub const ENQUEUE_MAX_JOBS: usize = 100_000;
/// Jobs one claim may take, one renewal or finish may carry.
pub const JOB_MAX_BATCH: usize = 10_000;
/// Bytes of a job's payload, result or progress as JSON text.
pub const PAYLOAD_MAX_BYTES: usize = 256 * 1024;
/// Characters of a queue's name, a job's kind or a worker's name.
pub const QUEUE_NAME_MAX_CHARS: usize = 128;
/// Characters of a job's deduplication key.
pub const DEDUP_KEY_MAX_CHARS: usize = 255;
/// Highest `max_attempts` of a job.
pub const MAX_ATTEMPTS_MAX: u32 = 32_767;
/// Highest limit of running jobs, of one queue or of all queues.
pub const RUNNING_MAX: u32 = 1_000_000;
/// Longest timeout of an attempt, and longest wait of a snooze or a retry, in days.
pub const JOB_WAIT_MAX_DAYS: u32 = 366;
/// Longest timeout of an execution, in days.
pub const EXECUTION_TIMEOUT_MAX_DAYS: u32 = 366;
/// Queues that one worker key may name.
pub const KEY_MAX_QUEUES: usize = 100;
/// Characters of a worker's name over HTTP, where the server appends the id of the key.
pub const HTTP_WORKER_NAME_MAX_CHARS: usize = 90;
/// Jobs one claim over HTTP may take.
pub const HTTP_CLAIM_MAX_JOBS: u32 = 1_000;
/// Jobs one enqueue call over HTTP may carry.
pub const HTTP_ENQUEUE_MAX_JOBS: usize = 10_000;
/// Longest time a claim over HTTP waits for a job (long poll), in seconds.
pub const CLAIM_WAIT_MAX_SECONDS: u64 = 60;
/// Workspaces that an overview shows, and queues.
pub const OVERVIEW_MAX: u32 = 50;
/// Waiting jobs of a queue that an overview counts exactly.
pub const OVERVIEW_JOBS_MAX: u32 = 10_000;
/// Requests ahead of a request in its line that are counted exactly.
pub const POSITION_MAX: u32 = 1_000;
