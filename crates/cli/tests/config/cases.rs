//! Invalid configuration files and the expected message for each. Knows no program.

/// A file, the line of the problem, its key, and a part of the message.
pub(crate) type Case = (&'static str, usize, &'static str, &'static str);

pub(crate) const NUMBERS_AND_TIMES: &[Case] = &[
    (
        "[dispatch]\nbatch_size = 0\n",
        2,
        "dispatch.batch_size",
        "must be from 1 to 1000, is 0",
    ),
    (
        "[dispatch]\nbatch_size = -5\n",
        2,
        "dispatch.batch_size",
        "must be from 1 to 1000, is -5",
    ),
    (
        "[dispatch]\nbatch_size = 99999999999999999999999\n",
        2,
        "dispatch.batch_size",
        "must be from 1 to 1000, is 99999999999999999999999",
    ),
    (
        "[dispatch]\nbatch_size = 1.5\n",
        2,
        "dispatch.batch_size",
        "must be an integer from 1 to 1000, is a fraction",
    ),
    (
        "[dispatch]\nbatch_size = \"10\"\n",
        2,
        "dispatch.batch_size",
        "must be an integer from 1 to 1000, is `10`",
    ),
    (
        "[server]\nheader_max_bytes = 100\n",
        2,
        "server.header_max_bytes",
        "must be from 8192 to 1048576, is 100",
    ),
    (
        "[dispatch]\npoll_interval = \"soon\"\n",
        2,
        "dispatch.poll_interval",
        "such as \"5s\", \"250ms\" or \"2m\", is `soon`",
    ),
    (
        "[dispatch]\npoll_interval = 5\n",
        2,
        "dispatch.poll_interval",
        "such as \"5s\", \"250ms\" or \"2m\", is 5",
    ),
    (
        "[dispatch]\nclaim_lease = \"10ms\"\n",
        2,
        "dispatch.claim_lease",
        "must be from 1s to 24h, is 10ms",
    ),
    (
        "[follow]\ncatch_up = \"1000000h\"\n",
        2,
        "follow.catch_up",
        "must be from 0s to 24h, is 1000000h",
    ),
    (
        "[retention]\nfailed = \"-1h\"\n",
        2,
        "retention.failed",
        "must be a duration",
    ),
    (
        "[log]\nlevel = 07:32:00\n",
        2,
        "log.level",
        "must be a string, is a date or time",
    ),
];

pub(crate) const WORDS: &[Case] = &[
    (
        "[store]\nnotify = \"yes\"\n",
        2,
        "store.notify",
        "must be true or false, is `yes`",
    ),
    (
        "[engine]\nkind = \"other\"\n",
        2,
        "engine.kind",
        "must be \"embedded\" or \"temporal\", is `other`",
    ),
    (
        "[dispatch]\nmode = true\n",
        2,
        "dispatch.mode",
        "must be \"exclusive\" or \"parallel\", is true",
    ),
    (
        "[log]\nformat = [\"json\"]\n",
        2,
        "log.format",
        "must be \"text\" or \"json\", is a list",
    ),
    (
        "[log]\nlevel = \"loud\"\n",
        2,
        "log.level",
        "must be error, warn, info, debug or trace, or a filter such as",
    ),
    (
        "[server]\nlisten = \"7777\"\n",
        2,
        "server.listen",
        "must be host:port, such as 127.0.0.1:7777, is `7777`",
    ),
    (
        "[store]\nurl = \"mysql://me:hush@db/x\"\n",
        2,
        "store.url",
        "must be `sqlite:FILE` or `postgres://",
    ),
    (
        "[store]\nurl = \"postgres://me:hush@db/x?sslmode=maybe\"\n",
        2,
        "store.url",
        "sslmode must be one of disable, allow, prefer, require, verify-ca, verify-full",
    ),
    (
        "[temporal]\naddress = \"ftp://x\"\n",
        2,
        "temporal.address",
        "must be host:port, or a URL with http:// or https://",
    ),
    (
        "[temporal]\nnamespace = \" \"\n",
        2,
        "temporal.namespace",
        "must not be empty",
    ),
    (
        "[temporal]\napi_key = \"hush hush\"\n",
        2,
        "temporal.api_key",
        "must be one or more visible ASCII characters",
    ),
    (
        "[worker]\nserver = \"localhost\"\n",
        2,
        "worker.server",
        "must be a URL such as http://127.0.0.1:7777",
    ),
    (
        "[worker]\nkey = \"hush\"\n",
        2,
        "worker.key",
        "starts with lh_worker_",
    ),
    (
        "[http_nodes]\nallow = [\"10.0.0.0/99\"]\n",
        2,
        "http_nodes.allow",
        "a network like 10.0.0.0/8",
    ),
    (
        "[http_nodes]\nallow = [7]\n",
        2,
        "http_nodes.allow",
        "must be a list of addresses",
    ),
    (
        "[http_nodes]\ndeny = [\"corp network\"]\n",
        2,
        "http_nodes.deny",
        "a network like 10.0.0.0/8",
    ),
    (
        "data_dir = \"\"\n",
        1,
        "data_dir",
        "must be the path of a file, is empty",
    ),
];

pub(crate) const NAMES: &[Case] = &[
    (
        "[store]\nurl = \"postgres://me:hush@db:port/x\"\n",
        2,
        "store.url",
        "must be a URL such as postgres://user:password@host:5432/database",
    ),
    (
        "[dispatch]\nbatch = 10\n",
        2,
        "dispatch.batch",
        "did you mean dispatch.batch_size?",
    ),
    (
        "[server]\nbody_max_byte = 10\n",
        2,
        "server.body_max_byte",
        "did you mean server.body_max_bytes?",
    ),
    (
        "listen = \"127.0.0.1:1\"\n",
        1,
        "listen",
        "did you mean server.listen?",
    ),
    (
        "\n\n[temporal]\nurl = \"x\"\n",
        4,
        "temporal.url",
        "did you mean store.url?",
    ),
    (
        "[cancel]\nmagic = 1\n",
        2,
        "cancel.magic",
        "cancel has interval, batch, concurrency",
    ),
    (
        "[dispach]\nbatch_size = 10\n",
        1,
        "dispach",
        "did you mean [dispatch]?",
    ),
    ("[nonsense]\n", 1, "nonsense", "sections are store, server,"),
    (
        "dispatch = 5\n",
        1,
        "dispatch",
        "is a section: write [dispatch]",
    ),
    (
        "[[dispatch]]\nbatch_size = 1\n",
        1,
        "dispatch",
        "is a section: write [dispatch]",
    ),
    (
        "[dispatch.batch_size]\nvalue = 1\n",
        1,
        "dispatch.batch_size",
        "must be an integer from 1 to 1000, is a section",
    ),
    (
        "dispatch = { batch_size = 0 }\n",
        1,
        "dispatch.batch_size",
        "must be from 1 to 1000, is 0",
    ),
];

pub(crate) const TOGETHER: &[Case] = &[
    (
        "[dispatch]\nstart_timeout = \"1s\"\n",
        2,
        "dispatch.start_timeout",
        "must be longer than temporal.connect_timeout (5s) plus temporal.call_timeout (10s)",
    ),
    (
        "[temporal]\ncall_timeout = \"1h\"\n",
        2,
        "dispatch.start_timeout",
        "must be longer than",
    ),
    (
        "[instance]\n\nforget_after = \"2s\"\n",
        3,
        "instance.forget_after",
        "must be longer than instance.interval (4s), is 2s",
    ),
    (
        "[server]\nbatch_max_bytes = 500000000\n",
        2,
        "server.bodies_max_bytes",
        "must be at least server.batch_max_bytes (500000000)",
    ),
    (
        "[server]\ntls_key_file = \"key.pem\"\n",
        2,
        "server.tls_key_file",
        "must be set together with server.tls_certificate_file",
    ),
    (
        "[temporal]\ntls_certificate_file = \"a.pem\"\n",
        2,
        "temporal.tls_certificate_file",
        "must be set together with temporal.tls_key_file",
    ),
    (
        "[store]\nprepared_statements = false\n",
        2,
        "store.prepared_statements",
        "must be true if store.pooler is \"none\"",
    ),
    (
        "[temporal]\naddress = \"http://x:1\"\ntls = true\n",
        2,
        "temporal.address",
        "must be https://",
    ),
];

pub(crate) const FILES: &[Case] = &[
    (
        "[server]\ntls_certificate_file = \"nowhere.pem\"\ntls_key_file = \"pem\"\n",
        2,
        "server.tls_certificate_file",
        "must be a readable file: cannot read nowhere.pem",
    ),
    (
        "[store]\nurl = \"postgres://db/x\"\ntls_ca_file = \"text\"\n",
        3,
        "store.tls_ca_file",
        "must be a PEM file, text is not",
    ),
    (
        "[store]\nurl = \"postgres://db/x\"\ntls_ca_file = \"pem\"\n",
        3,
        "store.tls_ca_file",
        "CA certificate",
    ),
    (
        "[server]\ntls_certificate_file = \"pem\"\ntls_key_file = \"pem\"\n",
        3,
        "server.tls_key_file",
        "pem contains no PEM key",
    ),
    (
        "[temporal]\ntls_ca_file = \".\"\n",
        2,
        "temporal.tls_ca_file",
        "must be a readable file",
    ),
    (
        "[worker]\nkey_file = \"text\"\n",
        2,
        "worker.key_file",
        "must contain only a Leasehold API key",
    ),
    (
        "[worker]\ntls_ca_file = \"text\"\n",
        2,
        "worker.tls_ca_file",
        "must be a PEM file",
    ),
    (
        "[store]\nurl = \"sqlite:.\"\n",
        2,
        "store.url",
        "must be a file, . is a directory",
    ),
    (
        "data_dir = \"text\"\n",
        1,
        "data_dir",
        "must be a directory, text is a file",
    ),
];
