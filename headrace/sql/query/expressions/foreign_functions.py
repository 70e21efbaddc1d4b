"""Functions of ksqlDB, Flink, Arroyo and others, and how the same is written here."""

__all__ = ["FOREIGN_FUNCTIONS"]

_JSON = "get_json_object with a path, such as '$.name'"

#: What to write instead, by the name in lower case.
FOREIGN_FUNCTIONS = {
    # ksqlDB
    "arraycontains": "array_contains(x, value)",
    "as_value": "the column itself",
    "as_map": "map_from_arrays(keys, values)",
    "datetostring": "date_format(x, 'yyyy-MM-dd')",
    "earliest_by_offset": "first(x), and first(x) IGNORE NULLS where nulls do not count",
    "extractjsonfield": _JSON,
    "format_date": "date_format(x, 'yyyy-MM-dd')",
    "format_timestamp": "date_format(x, 'yyyy-MM-dd HH:mm:ss')",
    "from_days": "date_add(DATE '1970-01-01', x)",
    "geo_distance": "the formula, with sin, cos and acos",
    "jsonkeys": "json_object_keys(x)",
    "latest_by_offset": "last(x), and last(x) IGNORE NULLS where nulls do not count",
    "parse_date": "to_date(x, 'yyyy-MM-dd')",
    "parse_timestamp": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "stringtodate": "to_date(x, 'yyyy-MM-dd')",
    "stringtotimestamp": "to_timestamp(x, 'yyyy-MM-dd HH:mm:ss')",
    "timestamptostring": "date_format(x, 'yyyy-MM-dd HH:mm:ss')",
    # Flink
    "json_exists": "get_json_object with a path, and IS NOT NULL",
    "json_query": _JSON,
    "json_value": _JSON,
    "split_index": "split(x, ',')[0]",
    # Arroyo, DataFusion and PostgreSQL
    "array_length": "size(x)",
    "date_bin": "GROUP BY window(<event time>, '1 minute')",
    "extract_json": _JSON,
    "extract_json_string": _JSON,
    "get_first_json_object": _JSON,
    "json_extract": _JSON,
    "json_extract_string": _JSON,
    "jsonb_extract_path_text": _JSON,
    "strpos": "instr(x, part)",
    "to_unixtime": "unix_timestamp(x)",
    "to_hex": "hex(x)",
    "from_hex": "unhex(x)",
    "row": "struct(a, b), or named_struct('x', a, 'y', b)",
    "datetime": "to_timestamp(x)",
    "strftime": "date_format(x, 'yyyy-MM-dd HH:mm:ss')",
    "regexp_matches": "regexp_extract(x, pattern)",
    "jsonb_array_elements": "explode(from_json(x, 'array<...>'))",
    "jsonb_build_object": "to_json(named_struct('name', x))",
    "generate_series": "explode(sequence(1, 10))",
    "safe_cast": "try_cast(x AS type)",
    "iif": "if(condition, x, y)",
    "isnumeric": "try_cast(x AS DOUBLE) IS NOT NULL",
    "to_timestamp_ltz": "timestamp_millis(x)",
    "from_unixtime_millis": "timestamp_millis(x)",
    "epoch_ms": "timestamp_millis(x)",
    "unix_timestamp_millis": "unix_millis(x)",
    # of a window, which is a column here
    "hop_proctime": "window.end",
    "session_proctime": "window.end",
    "tumble_proctime": "window.end",
    "window_end": "window.end",
    "window_start": "window.start",
    "windowend": "window.end",
    "windowstart": "window.start",
}
