//! The fixed limits of the domain. Limits that an operator can change are settings and stand elsewhere.

/// Highest concurrency limit of a workspace.
pub const CONCURRENCY_MAX: u32 = 100_000;
/// Bytes of a request's params as JSON text.
pub const PARAMS_MAX_BYTES: usize = 256 * 1024;
/// How deep a JSON document may nest.
pub const JSON_MAX_DEPTH: usize = 64;
/// Digits after the decimal point of a number in params, written out: more than any double has. PostgreSQL cannot store 16,384.
pub const JSON_MAX_FRACTION_DIGITS: usize = 1_100;
/// Lowest and highest priority of a request.
pub const PRIORITY_RANGE: std::ops::RangeInclusive<i16> = -1000..=1000;
/// PENDING requests of a workspace without its own `max_pending`. Also stands in the schemas.
pub const MAX_PENDING_DEFAULT: u64 = 1_000_000;
/// Highest `max_pending` of a workspace.
pub const MAX_PENDING_MAX: u64 = 1_000_000_000;
/// Highest `max_open_bytes` of a workspace: 1 TiB.
pub const MAX_OPEN_BYTES_MAX: u64 = 1 << 40;
/// Bytes that an open request counts beside its params: its row, its first event and their index entries. Also stands in `leasehold_enqueue`.
pub const REQUEST_OVERHEAD_BYTES: u64 = 1_024;
/// Bytes that a definition counts, and a version beside its body and its params schema: their rows, index entries and audit entries. Definitions and
/// versions are never deleted from the store, so a workspace has at most 65,536 of both together with the smallest plan. Also stands in the migrations.
pub const CATALOG_ROW_BYTES: u64 = 1_024;
/// Bytes that one step of a graph writes without being charged to the workspace: ten nodes that start. A charge costs a statement, and a graph has
/// at most [`GRAPH_MAX_NODES`] nodes, each of which starts and ends once: an execution leaves at most 8 MB uncharged.
pub const STEP_UNCHARGED_BYTES: usize = 4 * 1024;
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
/// Crashes in a row, each while nothing else was computed, after which a request is poisoned. One or two may have another cause: a kill or a lack of
/// memory that hits a computation of microseconds by chance.
pub const POISONED_AFTER_CRASHES: u32 = 3;
/// Stack of the thread that computes a request's input again after a crash: half of what other threads have, so that an input that overflows theirs
/// overflows this one too.
pub const RECOMPUTE_STACK_BYTES: usize = 1024 * 1024;
/// Requests one recovery or bulk redrive call may change; pruning takes fewer, because claims wait for it.
pub const SWEEP_MAX_BATCH: u32 = 10_000;
/// Bytes of the requests that one bulk redrive enqueues, and one request more: as many as the body of a batch has over HTTP (`server.batch_max_bytes`). It is
/// one transaction, and SQLite's only writer serves no other call meanwhile.
pub const REDRIVE_MAX_BYTES: u64 = 16 * 1024 * 1024;
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
/// Bytes that the body of a publish call takes in memory once it is parsed, about: a graph of 1,000 nodes takes 2 MiB. Small objects take a
/// hundred times their text.
pub const GRAPH_MAX_MEMORY_BYTES: usize = 16 * 1024 * 1024;
/// Characters of a node's id, a queue's name, a workflow type or a task queue.
pub const NODE_ID_MAX_CHARS: usize = 128;
/// Longest pause of a `delay` node in milliseconds: a year.
pub const DELAY_MAX_MS: u64 = 366 * 86_400_000;
/// Bytes of JSON of a node's input.
pub const NODE_INPUT_MAX_BYTES: usize = PAYLOAD_MAX_BYTES - 1024;
/// Pointers in the `input` and the `url` of one node. Each can insert a value of any size, and each is looked up when the node starts.
pub const NODE_MAX_POINTERS: usize = 200;
/// Characters of a pointer.
pub const POINTER_MAX_CHARS: usize = 1_024;
/// Parts of all pointers of a graph together. A start resolves all pointers of its nodes at once, and each part takes about 300 bytes meanwhile.
pub const GRAPH_MAX_POINTER_PARTS: usize = 20_000;
/// Parts of a pointer: `/params` or `/nodes/{id}`, and one for each level of a document.
pub const POINTER_MAX_PARTS: usize = JSON_MAX_DEPTH + 2;
/// Bytes of params and outputs that the inputs of all nodes that start in one step are built from. Scanning them takes some milliseconds.
pub const STEP_READ_MAX_BYTES: usize = 16 * 1024 * 1024;
/// Bytes that one step of a graph may write, besides [`STEP_BYTES_FACTOR`] times what it reads: a thousand nodes that start take half of them.
pub const STEP_BASE_BYTES: usize = 1024 * 1024;
/// Bytes that one step of a graph may write for each byte of the params, the graph and the outputs that it reads.
pub const STEP_BYTES_FACTOR: usize = 10;
/// Bytes of the inputs of all nodes that start in one step, where an engine writes them into the step: a history of Temporal has 50 MB.
pub const STEP_INLINE_MAX_BYTES: usize = 32 * 1024 * 1024;
/// Bytes that the rows of a node and its job take in a store, besides their texts. Estimated, with indexes.
pub const NODE_ROW_BYTES: usize = 300;
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
/// Subschemas of a params schema. Each uses a few hundred bytes for as long as the schema is cached.
pub const SCHEMA_MAX_SUBSCHEMAS: usize = 10_000;
/// Bytes of a resolved `$id` or a `$ref`: thousands of `$id`s can inherit the same long base.
pub const SCHEMA_MAX_URI_BYTES: usize = 1_024;
/// Schemas that `$ref`s and applicators such as `allOf` may apply to one value in a chain. Each takes stack during validation.
pub const SCHEMA_MAX_REF_DEPTH: usize = 100;
/// Keywords that one path into the params can be compared with when all `$ref`s are expanded: some milliseconds of work. Every
/// level of `allOf` with two `$ref`s doubles it.
pub const SCHEMA_MAX_EXPANDED: u64 = 100_000;
/// Different patterns of a params schema. Compiling one takes up to some milliseconds.
pub const SCHEMA_MAX_PATTERNS: usize = 100;
/// Bytes of all compiled patterns of a params schema, which stay in memory while the schema is cached.
pub const SCHEMA_MAX_PROGRAM_BYTES: usize = 1024 * 1024;
/// Bytes of a pattern.
pub const PATTERN_MAX_BYTES: usize = 2_048;
/// How deep groups of a pattern may nest. Compiling it recurses.
pub const PATTERN_MAX_NESTING: usize = 32;
/// Characters and classes of a pattern with its repetitions written out. Matching takes time in proportion to them for each byte.
pub const PATTERN_MAX_POSITIONS: u64 = 1_000;
/// Bytes of a compiled pattern: room for some classes such as `\p{L}`, which take 10 to 40 KiB each.
pub const PATTERN_MAX_PROGRAM_BYTES: usize = 256 * 1024;
/// Steps of validating one request's params: about half a second. 256 KiB of params with an ordinary schema take a tenth of them.
pub const VALIDATION_MAX_STEPS: u64 = 10_000_000;
/// Schemas that validation may apply within each other: eight for each of the 64 levels of the params. Bounds the stack.
pub const VALIDATION_MAX_DEPTH: usize = 512;
/// Longest time of validating all params of one enqueue call, with the wait for a thread, in seconds.
pub const VALIDATION_MAX_SECONDS: u64 = 5;
/// Stack of a thread that compiles schemas and validates params: twice what the deepest schema needs in a debug build.
pub const VALIDATION_STACK_BYTES: usize = 2 * 1024 * 1024;
/// Most threads that compile schemas and validate params. There is one per core, and at least two.
pub const VALIDATION_MAX_THREADS: usize = 4;
/// Calls that may wait for such a thread. Their params are in memory.
pub const VALIDATION_MAX_WAITING: usize = 256;
/// Compiled schemas that an instance caches.
pub const SCHEMA_CACHE_MAX: usize = 1_000;
/// Bytes of the compiled schemas that an instance caches.
pub const SCHEMA_CACHE_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Jobs one enqueue call may carry.
pub const ENQUEUE_MAX_JOBS: usize = 100_000;
/// Jobs one claim may take, one renewal or finish may carry.
pub const JOB_MAX_BATCH: usize = 10_000;
/// Bytes of a job's payload, result or progress as JSON text.
pub const PAYLOAD_MAX_BYTES: usize = 256 * 1024;
/// Bytes of open jobs in the queues of one worker key, above which it cannot enqueue: 1 GiB.
pub const KEY_MAX_OPEN_BYTES: u64 = 1 << 30;
/// Bytes that an open job counts beside its payload: its row and its index entries.
pub const JOB_OVERHEAD_BYTES: u64 = 512;
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
/// Queues that one workspace may own. Queues are never deleted, and each is a row that lists and overviews read.
pub const QUEUES_OWNED_MAX: usize = 100;
/// Workspaces that one call may share a queue with.
pub const QUEUE_SHARE_MAX_WORKSPACES: usize = 1_000;
/// Queues that one worker key may name.
pub const KEY_MAX_QUEUES: usize = 100;
/// Longest time that a key which expires is valid, in days.
pub const KEY_LIFETIME_MAX_DAYS: u32 = 3_660;
/// Shortest time that a key which expires is valid, in milliseconds: instances cache a key for a second.
pub const KEY_LIFETIME_MIN_MS: u64 = 1_000;
/// Longest overlap of a rotation, in which the old key stays valid, in days.
pub const KEY_OVERLAP_MAX_DAYS: u32 = 366;
/// Hours that a rotated key stays valid unless the rotation says otherwise.
pub const KEY_OVERLAP_DEFAULT_HOURS: u32 = 24;
/// Shortest time between two records of the last use of a key by one instance, in seconds. A record is a write.
pub const KEY_USE_INTERVAL_SECONDS: u64 = 60;
/// Calls with a key that is not cached that may wait for its lookup. More are refused, so that callers who send random keys delay a valid one that
/// waits by some lookups at most. One that finds no place to wait is refused too.
pub const KEY_LOOKUPS_WAITING_MAX: usize = 256;
/// Characters of a worker's name over HTTP, where the server appends the id of the key.
pub const HTTP_WORKER_NAME_MAX_CHARS: usize = 90;
/// Items from which on a change waits for its turn on a store with one writer: enqueued requests and jobs, finished jobs. A bulk redrive always does.
pub const LARGE_CHANGE_MIN_ITEMS: usize = 101;
/// Changes with that many items under way at once on a store with one writer. One workspace or key gets one; the other is for the others.
pub const LARGE_CHANGES_MAX: usize = 2;
/// Jobs one claim over HTTP may take.
pub const HTTP_CLAIM_MAX_JOBS: u32 = 1_000;
/// Bytes of the payloads, progress and errors of the jobs that one claim returns; for a job of a graph, the bytes that the claim reads and builds. A
/// claim takes fewer jobs than requested if more do not fit, and at least one. `leasehold_job_claim` has the same number.
pub const CLAIM_MAX_BYTES: usize = 4 * 1024 * 1024;
/// Jobs one enqueue call over HTTP may carry.
pub const HTTP_ENQUEUE_MAX_JOBS: usize = 10_000;
/// Longest time a claim over HTTP waits for a job (long poll), in seconds.
pub const CLAIM_WAIT_MAX_SECONDS: u64 = 60;
/// Calls that wait for the engine's answer about an execution's nodes at once. Each may hold `NODE_OUTPUTS_MAX_BYTES`.
pub const ENGINE_READS_MAX: usize = 8;
/// Longest time that such a call waits for the engine, in seconds.
pub const ENGINE_READ_MAX_SECONDS: u64 = 5;
/// Events that one read of the change stream scans, of whichever workspace they are. It returns its position when it has scanned so many.
pub const CHANGE_SCAN_MAX: u32 = 5_000;
/// Bytes of a cursor as text: it must fit into a header, beside others.
pub const CURSOR_MAX_BYTES: usize = 4_096;
/// Transactions in progress at the end of a window of the change stream, which a cursor on PostgreSQL lists. Bounds the cursor.
pub const CURSOR_MAX_WRITERS: usize = 256;
/// Lists that are read at once, each a page of some MiB.
pub const LISTS_MAX: usize = 4;
/// Workspaces that an overview shows, and queues.
pub const OVERVIEW_MAX: u32 = 50;
/// Waiting jobs of a queue that an overview counts exactly.
pub const OVERVIEW_JOBS_MAX: u32 = 10_000;
/// Requests ahead of a request in its line that are counted exactly.
pub const POSITION_MAX: u32 = 1_000;
/// Bytes of the path of a Unix socket: macOS allows 104 with the final zero byte, Linux 108; the smaller of the two.
pub const SOCKET_PATH_MAX_BYTES: usize = 103;
/// Headers of a request. In memory each takes many times the four bytes that it can have in HTTP/2.
pub const HEADERS_MAX: usize = 100;
/// Connections of a server's local socket, beside `server.max_connections`: peers on the network cannot keep an operator out.
pub const LOCAL_CONNECTIONS_MAX: usize = 100;
/// Reports of ended executions per second that one key may send. Each wakes the reconciler for all executions, so more reports add nothing.
pub const END_REPORTS_PER_SECOND: u32 = 100;
/// Reports of ended executions that one key may send at once.
pub const END_REPORTS_BURST: u32 = 200;
/// Shortest time between two checks of reports of ended executions, in milliseconds: each costs a statement, and may notify the reconciler.
pub const END_REPORT_INTERVAL_MS: u64 = 100;
/// Reports of ended executions that one check takes; more are dropped, since the reconciler polls anyway.
pub const END_REPORTS_MAX: usize = 256;
/// Versions that one check of reports of ended executions reads.
pub const END_REPORT_VERSIONS_MAX: usize = 16;
