"""The ledger's tables in DuckDB. Everything of ours is in the schema `headrace`."""

__all__ = ["SCHEMA", "SCHEMA_VERSION"]

SCHEMA_VERSION = 9

SCHEMA = (
    "CREATE SCHEMA headrace",
    # `commits` counts the commits of all units, and swaps.
    """CREATE TABLE headrace.engine (
        schema_version INTEGER, epoch BIGINT, store_id VARCHAR, commits BIGINT)""",
    # `turn` is the last one committed. The planned one follows it; NULL when there is none.
    # `planned_ranges` is [[stream, topic, partition, start, end], ...].
    """CREATE TABLE headrace.units (
        unit VARCHAR PRIMARY KEY, turn BIGINT, time_offset BIGINT, void_markers BIGINT,
        planned_epoch BIGINT, planned_ranges VARCHAR)""",
    """CREATE TABLE headrace.holdings (
        kind VARCHAR, name VARCHAR, version VARCHAR, unit VARCHAR, inputs VARCHAR[],
        fingerprint VARCHAR, forms VARCHAR[], text VARCHAR, state VARCHAR, reason VARCHAR,
        evaluated VARCHAR[])""",
    """CREATE TABLE headrace.progress (
        unit VARCHAR, stream VARCHAR, partition INTEGER, next_offset BIGINT,
        clock_us BIGINT, watermark_us BIGINT, delay_us BIGINT, records_us BIGINT)""",
    # Each turn adds rows; their sums count, and every so often they are summed up here too.
    """CREATE TABLE headrace.counters (
        kind VARCHAR, name VARCHAR, version VARCHAR, input VARCHAR, counter VARCHAR,
        value BIGINT)""",
    """CREATE TABLE headrace.turns (
        unit VARCHAR, turn BIGINT, epoch BIGINT, committed TIMESTAMPTZ, gear VARCHAR,
        records BIGINT, late BIGINT, dead BIGINT, milliseconds VARCHAR)""",
    "CREATE SEQUENCE headrace.outbox_numbers",
    """CREATE TABLE headrace.outbox (
        number BIGINT, topic VARCHAR, source_topic VARCHAR, source_partition INTEGER,
        producer_id VARCHAR, offsets BIGINT[], reasons VARCHAR[])""",
    # The versions of a view that readers see or saw, from the commit `since` on; older ones only
    # while changes of theirs are kept. `relation` is what their rows are; `same` whether that is
    # what those of the version before were.
    """CREATE TABLE headrace.shown (
        view VARCHAR, version VARCHAR, since BIGINT, relation VARCHAR, same BOOLEAN)""",
    # Views that are followed: all their changes after the commit `since` are kept. Before the
    # commit `readable` those of several commits are one (changes/compacting.py).
    """CREATE TABLE headrace.followed (
        view VARCHAR, since BIGINT, always BOOLEAN, readable BIGINT)""",
    # A sink has all changes up to the commit `told`; `until` and `first` are as in SinkState.
    """CREATE TABLE headrace.sinks (
        sink VARCHAR, view VARCHAR, topic VARCHAR, mode VARCHAR, emit VARCHAR, key VARCHAR[],
        told BIGINT, until BIGINT, first BIGINT, paused BOOLEAN)""",
    # Readers whose changes are kept from `told` on; the newest place of each is in memory.
    "CREATE TABLE headrace.leases (lease VARCHAR, view VARCHAR, told BIGINT)",
    # How large the changes of a commit are, where readers besides sinks follow the view.
    """CREATE TABLE headrace.change_sizes (
        view VARCHAR, commit BIGINT, bytes BIGINT)""",
    # Rows of written streams on their way to their topics; the columns of WRITTEN_ROWS.
    "CREATE SEQUENCE headrace.written_numbers",
    """CREATE TABLE headrace.written_rows (
        number BIGINT, topic VARCHAR, producer_id VARCHAR, version VARCHAR, source_topic VARCHAR,
        source_partition INTEGER, source_offset BIGINT, sequence BIGINT, branch INTEGER,
        ordinals VARCHAR, watermark_us BIGINT, by_key BOOLEAN, key BLOB, value VARCHAR)""",
    # The version that writes what comes of a source partition: offsets before `next_offset` are
    # written, those from `from_offset` on by this version. It stays when the stream goes.
    """CREATE TABLE headrace.written_by (
        topic VARCHAR, producer_id VARCHAR, version VARCHAR, from_offset BIGINT,
        next_offset BIGINT)""",
    """CREATE TABLE headrace.seeds (
        stream VARCHAR, version VARCHAR, partition INTEGER, next_offset BIGINT,
        clock_us BIGINT, watermark_us BIGINT, delay_us BIGINT, records_us BIGINT,
        time_offset BIGINT)""",
    # The runs of state that a unit keeps of an operator over a version of a stream.
    """CREATE TABLE headrace.manifests (
        unit VARCHAR, operator VARCHAR, stream VARCHAR, version VARCHAR, file VARCHAR,
        first_shard INTEGER, end_shard INTEGER,
        row_count BIGINT, largest_clock_us BIGINT, file_bytes BIGINT)""",
    # W of a view at the reader's position; no row while it is -infinity.
    """CREATE TABLE headrace.view_watermarks (
        view VARCHAR, version VARCHAR, watermark_us BIGINT)""",
    """CREATE VIEW headrace.watermarks AS
        SELECT view, version, make_timestamp(watermark_us) AT TIME ZONE 'UTC' AS watermark
        FROM headrace.view_watermarks""",
    # Exact division of a decimal sum by a count, half up to `digits` decimals, which are four more
    # than the sum has. Through text, because DuckDB divides decimals as DOUBLE.
    # The point is set in the text too: pow(10, 23) is not a power of ten any more.
    """CREATE MACRO headrace.shift_point(unscaled, digits, negative) AS
        CASE WHEN negative THEN '-' ELSE '' END
        || (unscaled // CAST('1' || repeat('0', digits) AS HUGEINT)) || '.'
        || lpad(CAST(unscaled % CAST('1' || repeat('0', digits) AS HUGEINT) AS VARCHAR),
                digits, '0')""",
    """CREATE MACRO headrace.exact_average(total, n, digits) AS
        CASE WHEN n > 0 THEN headrace.shift_point(
            (abs(CAST(replace(CAST(total AS VARCHAR), '.', '') AS HUGEINT)) * 20000 + n) // (2 * n),
            digits,
            total < 0) END""",
    # Chan's formula for two sets of values, each (how many, mean, sum of squared distances from
    # it). Where m2 is NaN or infinity there is no mean, and none is needed any more.
    """CREATE MACRO headrace.merged_squares(a, b) AS
        CASE WHEN isfinite(a.m2) AND isfinite(b.m2) THEN a.m2 + b.m2
            + (b.mean - a.mean) * ((b.mean - a.mean) * (CAST(a.n AS DOUBLE) * b.n / (a.n + b.n)))
        ELSE a.m2 + b.m2 END""",
    """CREATE MACRO headrace.merge_moments(a, b) AS
        CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a ELSE struct_pack(
            n := a.n + b.n,
            mean := CASE WHEN isfinite(headrace.merged_squares(a, b))
                THEN a.mean + (b.mean - a.mean) * (CAST(b.n AS DOUBLE) / (a.n + b.n)) END,
            m2 := headrace.merged_squares(a, b)) END""",
    # The same for pairs of values, with the sum of the products of their distances. Where one is no
    # finite number, or too large, all is NaN.
    """CREATE MACRO headrace.merged_products(c_a, c_b, x, y, n_a, n_b) AS
        c_a + c_b + x * (y * (CAST(n_a AS DOUBLE) * n_b / (n_a + n_b)))""",
    """CREATE MACRO headrace.merge_pairs(a, b) AS
        CASE WHEN a IS NULL THEN b WHEN b IS NULL THEN a
        WHEN isfinite(a.c2) AND isfinite(b.c2) THEN struct_pack(
            n := a.n + b.n,
            mean_a := a.mean_a + (b.mean_a - a.mean_a) * (CAST(b.n AS DOUBLE) / (a.n + b.n)),
            mean_b := a.mean_b + (b.mean_b - a.mean_b) * (CAST(b.n AS DOUBLE) / (a.n + b.n)),
            m2_a := headrace.merged_products(
                a.m2_a, b.m2_a, b.mean_a - a.mean_a, b.mean_a - a.mean_a, a.n, b.n),
            m2_b := headrace.merged_products(
                a.m2_b, b.m2_b, b.mean_b - a.mean_b, b.mean_b - a.mean_b, a.n, b.n),
            c2 := headrace.merged_products(
                a.c2, b.c2, b.mean_a - a.mean_a, b.mean_b - a.mean_b, a.n, b.n))
        ELSE struct_pack(
            n := a.n + b.n, mean_a := CAST(NULL AS DOUBLE), mean_b := CAST(NULL AS DOUBLE),
            m2_a := CAST('NaN' AS DOUBLE), m2_b := CAST('NaN' AS DOUBLE),
            c2 := CAST('NaN' AS DOUBLE)) END""",
    # Ertl's estimate (aggregates/hyperloglog.py) from how many registers are filled and the sum of
    # 2 ** -run over them. The list is his sigma, which ends long before 30 terms.
    """CREATE MACRO headrace.estimate_distinct(registers, filled, powers) AS
        CASE WHEN filled = 0 THEN 0 ELSE CAST(round(
            registers * (registers / (2 * ln(2))) / (powers + registers * (
                (registers - filled) / registers + list_sum(list_transform(range(1, 30),
                    lambda k: ((registers - filled) / registers) ** (2 ** k) * 2 ** (k - 1)))))
            ) AS BIGINT) END""",
)
