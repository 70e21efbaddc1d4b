/** The two dialects: definitions are written for Spark, questions for DuckDB. */

import { PostgreSQL, SQLDialect } from "../../vendor/codemirror.js";
import { DUCKDB_KEYWORDS, DUCKDB_TYPES } from "./words.js";

/** For questions. DuckDB's grammar comes from PostgreSQL's: its quotes and comments are the same. */
export const DUCKDB = SQLDialect.define({
  ...PostgreSQL.spec,
  keywords: DUCKDB_KEYWORDS.join(" "),
  types: DUCKDB_TYPES.join(" "),
  doubleDollarQuotedStrings: true,
});

/** For definitions, which are shown and never typed here: Spark SQL and our own DDL around it. */
export const SHOWN_DIALECT = SQLDialect.define({
  keywords: `${DUCKDB_KEYWORDS.join(" ")} create view stream materialized watermark emit changes sink lateral explode
    window session_window cumulate topic format key interval seconds minutes hours days second minute hour day`,
  types: "string int bigint smallint tinyint double float decimal boolean timestamp date binary array map struct",
  doubleQuotedStrings: true,
  backslashEscapes: true,
  identifierQuotes: "`",
});
