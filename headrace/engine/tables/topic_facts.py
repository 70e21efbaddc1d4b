"""Find changes that can be read but do not fit their topic; they are dead."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.log.base import Log
from headrace.model.definitions import Stream
from headrace.schema.codec import TRUNCATE_HEADER, UNSENT, Decoded, Operation
from headrace.wording import counted

__all__ = ["NO_FACTS", "TopicFacts", "bury_unfit", "truncating"]

_TRUNCATES_ONE = (
    "it truncates the table in one of {}, and rows of the others would stay; what captures the "
    f"changes has to write it to all partitions, each with the header {TRUNCATE_HEADER}"
)
_UNSENT = (
    "it leaves {} as it was, and the topic is compacted, so the change that has the value may be "
    "gone; let the database send whole rows: ALTER TABLE ... REPLICA IDENTITY FULL"
)


class TopicFacts(NamedTuple):
    """The settings of a table's topic that decide which changes are dead."""

    partitions: int = 1
    compacted: bool = False

    @staticmethod
    def of(log: Log, stream: Stream) -> "TopicFacts":
        """Return the settings of a table's topic. Other streams do not depend on them."""
        if not stream.primary_key:
            return NO_FACTS
        topic = log.topic(stream.topic)
        return TopicFacts(topic.partitions, topic.settings.compact)


#: The settings for a stream that is no table.
NO_FACTS = TopicFacts()


def truncating(decoded: Decoded) -> npt.NDArray[np.bool_]:
    """Return which records truncate the table. Dead records are left out."""
    assert decoded.operations is not None
    found: npt.NDArray[np.bool_] = decoded.living & (decoded.operations == Operation.TRUNCATE)
    return found


def bury_unfit(facts: TopicFacts, records: pa.Table, decoded: Decoded) -> Decoded:
    """Add the changes that do not fit the topic to the dead ones."""
    if facts.partitions > 1 and (truncates := np.flatnonzero(truncating(decoded))).size:
        headers = records["headers"].take(pa.array(truncates)).to_pylist()
        alone = [
            at
            for at, found in zip(truncates.tolist(), headers, strict=True)
            if all(each["name"] != TRUNCATE_HEADER for each in found or ())
        ]
        reason = _TRUNCATES_ONE.format(counted(facts.partitions, "partition"))
        decoded = decoded.bury(np.array(alone, dtype=np.int64), [reason] * len(alone))
    if facts.compacted and UNSENT in decoded.rows.schema.names:
        unsent = decoded.rows[UNSENT].slice(0, decoded.count)
        is_lacking = pc.is_valid(unsent).to_numpy(zero_copy_only=False)
        lacking = np.flatnonzero(is_lacking & decoded.living)
        names = unsent.take(pa.array(lacking)).to_pylist()
        decoded = decoded.bury(lacking, [_UNSENT.format(", ".join(each)) for each in names])
    return decoded
