/** Words of DuckDB's SQL that the console completes. A test holds them against DuckDB itself. */

/** Keywords of questions; the console changes nothing, so those of changes are left out. */
export const DUCKDB_KEYWORDS = `
  all and anti any array as asc asof between both by case cast coalesce collate columns columns
  cross cube current desc describe distinct each else end escape except exclude exists explain
  extract false fetch filter first following for from full glob group grouping having if ignore
  ilike in inner intersect interval into is isnull join lambda last lateral left like limit
  materialized natural not notnull null nullif nulls offset on only or order ordinality others
  outer over overlaps partition percent pivot positional preceding qualify range recursive replace
  respect right rollup row rows sample select semi sets show similar some summarize symmetric
  table tablesample then ties to trailing true try_cast try_cast unbounded union unpivot using
  values when where window with within
`.trim().split(/\s+/);

/** Types, for CAST. */
export const DUCKDB_TYPES = `
  bigint blob boolean date decimal double float hugeint int integer interval json list map real
  smallint string struct text time timestamp timestamptz tinyint ubigint uinteger usmallint
  utinyint uuid varchar
`.trim().split(/\s+/);

/** Functions that people use in questions. */
export const DUCKDB_FUNCTIONS = `
  abs age any_value approx_count_distinct approx_quantile approx_top_k arg_max arg_min array_agg
  array_length avg bar bit_and bit_count bit_or bit_xor bool_and bool_or cbrt ceil concat
  concat_ws contains corr cos count count_if covar_pop covar_samp cume_dist current_date date_diff
  date_part date_sub date_trunc day dayname dayofweek dayofyear degrees dense_rank element_at
  ends_with entropy epoch epoch_ms epoch_us exp first_value flatten floor format format_bytes
  from_base64 generate_series greatest group_concat hash hex histogram hour isfinite isinf isnan
  isodow jaccard json_array_length json_extract json_extract_string json_keys json_object
  json_type json_valid kurtosis lag last_day last_value lead least len length levenshtein list
  list_aggregate list_concat list_contains list_distinct list_extract list_filter list_position
  list_reduce list_slice list_sort list_transform list_unique list_value list_zip ln log log10
  log2 lower lpad ltrim make_date make_timestamp map map_concat map_entries map_extract map_keys
  map_values max max_by md5 median min min_by minute mod mode month monthname now nth_value ntile
  ord percent_rank pi pow printf product quantile_cont quantile_disc quarter radians random rank
  regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace
  regexp_split_to_array regr_intercept regr_r2 regr_slope repeat reverse round row_number rpad
  rtrim second sha256 sign sin skewness split sqrt starts_with stddev stddev_pop stddev_samp
  strftime string_agg string_split strip_accents strlen strpos strptime struct_extract struct_pack
  substring sum tan time_bucket to_base64 to_days to_hours to_json to_microseconds to_milliseconds
  to_minutes to_seconds to_timestamp today translate trim trunc try_strptime typeof unnest upper
  url_decode url_encode uuid var_pop var_samp variance week weekofyear year
`.trim().split(/\s+/);
