"""Rounds of three processes that append until all of them are killed.

`python rounds.py <folder> <rounds> <seed>` appends to the topic `t` of `<folder>/log`: batches of
random size to one partition or, by key, to several; records `<round>-<child>-<batch>-<size>-<n>`.
The file `<folder>/acknowledged` gets a line `<round>-<child>-<batch>` for each batch that was.

Children are forked, so that a round takes milliseconds; this process has no other threads.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from headrace.log import EmbeddedLog, records

CHILDREN = 3
SEGMENT_BYTES = 30_000


def append_until_killed(folder: Path, round: int, child: int, chance: random.Random) -> None:
    log = EmbeddedLog(folder / "log", segment_bytes=SEGMENT_BYTES)
    said = os.open(folder / "acknowledged", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    batch = 0
    while True:
        size = chance.choice([1, 1, 2, 10, 100, 300])
        values = [f"{round}-{child}-{batch}-{size}-{n}" for n in range(size)]
        if chance.random() < 0.7:
            acks = chance.choice([1, "all"])  # the system keeps what a dead process has written
            log.append("t", records(values), partition=chance.randrange(3), acks=acks)
        else:
            log.append("t", records(values, keys=[str(n) for n in range(size)]))
        os.write(said, f"{round}-{child}-{batch}\n".encode())
        batch += 1


def main() -> None:
    folder, rounds, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    records(["warm"])  # imports all that there is to import
    chance = random.Random(seed)
    for round in range(rounds):
        children = []
        for child in range(CHILDREN):
            own = random.Random(chance.random())
            pid = os.fork()
            if pid == 0:
                append_until_killed(folder, round, child, own)
            children.append(pid)
        time.sleep(chance.uniform(0.01, 0.08))
        for pid in chance.sample(children, CHILDREN):
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "a child ended by itself"


if __name__ == "__main__":
    main()
