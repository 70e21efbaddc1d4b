"""A process that appends to a compacted topic and compacts it, until it is killed.

`python compacting.py <log> <name> <rounds>` appends, in each round, one record for each of 10 keys
`<key>` with the value `<name>-<round>` to `t/0`, prints the round, and compacts.
"""

import sys

from headrace.log import EmbeddedLog, records

KEYS = [f"k{n}" for n in range(10)]
SEGMENT_BYTES = 2_000


def main() -> None:
    path, name, rounds = sys.argv[1:]
    log = EmbeddedLog(path, segment_bytes=SEGMENT_BYTES)
    for round in range(int(rounds)):
        log.append("t", records([f"{name}-{round}"] * len(KEYS), keys=KEYS), partition=0)
        print(round, flush=True)
        log.compact("t")


if __name__ == "__main__":
    main()
