CREATE TABLE run (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    study TEXT NOT NULL,
    title TEXT NOT NULL,
    question TEXT NOT NULL,
    scale TEXT NOT NULL,
    seed INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    indicative INTEGER NOT NULL,
    baseline TEXT,
    study_text TEXT NOT NULL,
    command TEXT NOT NULL,
    weir_version TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    environment TEXT NOT NULL,
    placement TEXT NOT NULL,
    published TEXT NOT NULL,
    source TEXT NOT NULL,
    claims TEXT NOT NULL,
    study_folder TEXT NOT NULL,
    finished_unix_ns INTEGER,
    ended TEXT CHECK (ended IN ('complete', 'interrupted')),
    stopped TEXT
) STRICT;

CREATE TABLE cell (
    id INTEGER PRIMARY KEY,
    stack TEXT NOT NULL,
    variant TEXT,
    workload TEXT NOT NULL,
    load TEXT NOT NULL,
    arm TEXT NOT NULL CHECK (arm IN ('main', 'aa')),
    title TEXT NOT NULL,
    model TEXT NOT NULL,
    settings TEXT NOT NULL,
    replicas INTEGER NOT NULL,
    cpus INTEGER,
    started INTEGER NOT NULL,
    generator TEXT NOT NULL,
    coordinates TEXT NOT NULL,
    upper_bounds TEXT NOT NULL
) STRICT;

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    cell_id INTEGER NOT NULL REFERENCES cell (id),
    block INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0 CHECK (finished IN (0, 1)),
    validity TEXT CHECK (validity IN ('valid', 'suspect', 'invalid')),
    reasons TEXT,
    summary TEXT,
    resources TEXT,
    load_started_monotonic_ns INTEGER,
    ready_s REAL,
    artifact_bytes INTEGER,
    runtime TEXT,
    isolation TEXT,
    logs TEXT,
    window TEXT,
    whole_load TEXT,
    phases_s TEXT,
    work TEXT,
    discrepancies TEXT,
    reported_result TEXT,
    tap TEXT
) STRICT;

CREATE TABLE histogram (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    clock TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (trial_id, clock)
) STRICT;

CREATE TABLE interval (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    idx INTEGER NOT NULL,
    start_s REAL NOT NULL,
    end_s REAL NOT NULL,
    due INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    ok INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    errors TEXT NOT NULL,
    in_flight INTEGER NOT NULL,
    queued INTEGER NOT NULL,
    oldest_age_us REAL NOT NULL,
    bytes_sent INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    mean_us REAL,
    p50_us REAL,
    p90_us REAL,
    p99_us REAL,
    max_us REAL,
    histogram BLOB NOT NULL,
    PRIMARY KEY (trial_id, idx)
) STRICT;

CREATE TABLE sample (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    t_s REAL NOT NULL,
    name TEXT NOT NULL,
    tier TEXT NOT NULL,
    processes INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    cpu_user_s REAL NOT NULL,
    cpu_system_s REAL NOT NULL,
    rss_bytes INTEGER NOT NULL,
    pss_bytes INTEGER,
    private_bytes INTEGER,
    swap_bytes INTEGER,
    minor_faults INTEGER,
    major_faults INTEGER,
    voluntary_switches INTEGER NOT NULL,
    involuntary_switches INTEGER NOT NULL,
    descriptors INTEGER,
    disk_read_bytes INTEGER,
    disk_written_bytes INTEGER,
    rchar_bytes INTEGER,
    wchar_bytes INTEGER,
    throttled_periods INTEGER,
    throttled_s REAL
) STRICT;
CREATE INDEX sample_trial ON sample (trial_id, t_s);

CREATE TABLE cpu_sample (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    t_s REAL NOT NULL,
    cpu INTEGER NOT NULL,
    user_s REAL NOT NULL,
    system_s REAL NOT NULL,
    idle_s REAL NOT NULL,
    iowait_s REAL NOT NULL,
    irq_s REAL NOT NULL,
    softirq_s REAL NOT NULL,
    steal_s REAL NOT NULL
) STRICT;
CREATE INDEX cpu_sample_trial ON cpu_sample (trial_id, t_s);

CREATE TABLE thread_state (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    t_s REAL NOT NULL,
    name TEXT NOT NULL,
    tier TEXT NOT NULL,
    pool TEXT NOT NULL,
    threads INTEGER NOT NULL,
    on_cpu_s REAL NOT NULL,
    runnable_s REAL NOT NULL,
    socket_io_s REAL NOT NULL,
    event_wait_s REAL NOT NULL,
    lock_s REAL NOT NULL,
    accept_s REAL NOT NULL,
    disk_s REAL NOT NULL,
    sleep_s REAL NOT NULL,
    other_s REAL NOT NULL
) STRICT;
CREATE INDEX thread_state_trial ON thread_state (trial_id, t_s);

CREATE TABLE network_sample (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    t_s REAL NOT NULL,
    name TEXT NOT NULL,
    tcp_retransmits INTEGER NOT NULL,
    listen_overflows INTEGER NOT NULL,
    listen_drops INTEGER NOT NULL,
    received_bytes INTEGER NOT NULL,
    sent_bytes INTEGER NOT NULL,
    loopback_bytes INTEGER NOT NULL,
    established INTEGER NOT NULL,
    time_wait INTEGER NOT NULL,
    orphaned INTEGER NOT NULL,
    in_use INTEGER NOT NULL
) STRICT;
CREATE INDEX network_sample_trial ON network_sample (trial_id, t_s);

CREATE TABLE machine_sample (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    t_s REAL NOT NULL,
    cpu_some_s REAL,
    cpu_full_s REAL,
    memory_some_s REAL,
    memory_full_s REAL,
    io_some_s REAL,
    io_full_s REAL,
    observer_cpu_s REAL,
    sweeps INTEGER,
    thread_sweeps INTEGER
) STRICT;
CREATE INDEX machine_sample_trial ON machine_sample (trial_id, t_s);

CREATE TABLE event (
    trial_id INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
    t_s REAL NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    duration_s REAL
) STRICT;
CREATE INDEX event_trial ON event (trial_id, t_s);
