"""Names of columns, and expressions over the columns of a record, as Spark SQL."""

import re

from headrace.model.definitions import Stream
from headrace.model.nodes import COORDINATES, WATERMARK, WINDOW_COLUMNS
from headrace.model.scalars import Scalar

__all__ = ["coordinate_column", "event_time_of", "identifier", "quoted", "text_of"]


def coordinate_column(name: str) -> str:
    """Return what one of the COORDINATES is called in a fold's input."""
    return f"_{name}"


#: The columns of a record that are not its stream's.
_OWN = {WATERMARK: "timestamp_micros(__watermark)"}
_OWN |= {name: coordinate_column(name) for name in COORDINATES}
_OWN |= dict(zip(WINDOW_COLUMNS, ("window.start", "window.end", "window.time"), strict=True))

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
#: Words that mean something in Spark SQL; not each of them everywhere, but quotes never harm.
_WORDS = """
    add after aggregate all alter always analyze and anti any any_value apply approx archive array
    as asc asensitive asof at atomic authorization auto_increment autoincrement begin bernoulli
    between bigdecimal bigint bignum bignumeric binary binding bit blob bool boolean both bpchar
    bucket buckets by byte bytea cache call called cascade case cast catalog catalogs change
    changes char character check clear clob close cluster clustered codegen collate collation
    collations collection column columns comment commit compact compactions compensation compute
    concatenate condition constraint contains continue copy cost create cross cube current
    current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_user cursor data database databases date date_add date_diff dateadd
    datediff datemultirange daterange datetime day dayofyear days dbproperties dec decfloat
    decimal decimal128 decimal256 decimal32 decimal64 declare default default_path defined definer
    delay delete delimited desc describe deterministic dfs directories directory distance distinct
    distribute div do double drop else elseif end enforced enum escape escaped evolution exact
    except exchange exclude exclusive execute exists exit explain export extend extended external
    extract false fetch fields file fileformat filter first fixed float float4 float8 flow
    following for foreign format formatted found from full function functions generated geography
    geometry glob global grant group grouping handler having hour hours hugeint identified
    identifier identity if ignore ilike immediate import in include inclusive increment index
    indexes inet inner inpath input inputformat insensitive insert int int1 int128 int16 int2
    int256 int32 int4 int4multirange int4range int64 int8 int8multirange int8range integer
    intersect interval into invoker is isnull items iterate join json jsonb keep key keys kill
    language last lateral lazy leading leave left level like limit lines list load local localtime
    localtimestamp location lock locks logical long longblob longtext longvarchar loop macro map
    matched materialized max measure mediumblob mediumint mediumtext merge metrics microsecond
    microseconds millisecond milliseconds minus minute minutes modifies month months msck name
    namespace namespaces nanosecond nanoseconds natural nchar nearest next no none norely not
    notnull null nullable nulls number numeric nummultirange numrange nvarchar nvarchar2 object of
    offset on only open operator optimize option options or order ordinality out outer
    outputformat over overlaps overlay overwrite partition partitioned partitioned_by partitions
    path percent pivot placing position pragma preceding prepare primary principals procedure
    procedures properties purge qualify quarter query range read reads real recordreader
    recordwriter recover recursion recursive reduce ref references refresh regexp rely rename
    repair repeat repeatable replace reset respect restrict return returning returns revoke right
    rlike role roles rollback rollup row rows schema schemas second seconds security select semi
    separated sequence serde serdeproperties session session_user set sets settings short show
    similarity single skewed smallint some sort sorted source specific sql sqlexception sqlstate
    start statistics stored str straight_join stratify stream streaming string struct substr
    substring sync system system_path system_time system_version table tables tablesample target
    tblproperties temp temporary terminated text then time time_ns timediff timestamp
    timestamp_ltz timestamp_ntz timestampadd timestampdiff timestampltz timestampntz timestamptz
    timetz tinyblob tinyint tinytext to touch trailing transaction transactions transform trigger
    trim true truncate try_cast tsmultirange tsrange tstzmultirange tstzrange type uhugeint uint
    uint128 uint256 unarchive unbounded uncache union unique unknown unlock unnest unpivot unset
    until update use user using uuid vacuum value values var varbinary varchar varchar2 variable
    variant vector version view views void volatile watermark week weeks when where while window
    with within without x xor year years zone
    """
_KNOWN = frozenset(_WORDS.split())


def identifier(name: str) -> str:
    """Return a name as SQL, in backquotes where it could be read as anything but a name."""
    if _NAME.fullmatch(name) and name.lower() not in _KNOWN:
        return name
    return quoted(name)


def quoted(name: str) -> str:
    """Return a name in backquotes."""
    return f"`{name.replace('`', '``')}`"


def event_time_of(stream: Stream) -> str:
    """Return the column of a fold's input that holds the event time; the stream has one."""
    assert stream.event_time is not None
    return _OWN.get(stream.event_time) or quoted(stream.event_time)


def text_of(scalar: Scalar) -> str:
    """Return an expression over a record's columns, its watermark and its window."""
    return scalar.render(lambda name: _OWN.get(name) or identifier(name))
