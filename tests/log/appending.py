"""A process that appends until it is killed, and says what was acknowledged.

`python appending.py <log> <name> <batches> <segment bytes> [producer epoch]` appends batches of 3
records `<name>-<batch>-<0..2>` to `t/0` and prints the number of each batch that was acknowledged.
It begins when a line, or the end, comes on its standard input.
"""

import sys

from headrace.log import EmbeddedLog, Producer, records

BATCH_RECORDS = 3


def main() -> None:
    path, name, batches, segment_bytes, *epoch = sys.argv[1:]
    records(["warm"])  # the first table imports pandas, which takes longer than many appends
    sys.stdin.readline()
    log = EmbeddedLog(path, segment_bytes=int(segment_bytes))
    for batch in range(int(batches)):
        table = records([f"{name}-{batch}-{n}" for n in range(BATCH_RECORDS)])
        producer = Producer(name, int(epoch[0]), batch) if epoch else None
        log.append("t", table, partition=0, producer=producer)
        print(batch, flush=True)


if __name__ == "__main__":
    main()
