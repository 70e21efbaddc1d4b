"""A real Kafka broker for tests: one process in KRaft mode, on 127.0.0.1, without containers.

Promises:
- The jars are resolved once (jars.py); an archive of the classes that the broker loads, and an
  empty formatted folder, are made once beside them: it starts in half the time, and no Java is
  needed to format (4.9 to 1.8 CPU-seconds on Java 17).
- Ports are free ones and the data is in a temporary folder: any number of brokers may run.
- A broker is ready when `start` returns, and gone when `stop` returns; what it held is still there
  when it is started again.
Not promised: that a broker ends when the process that started it is killed.

Listeners: `bootstrap` takes anyone; `sasl_bootstrap` wants SASL_PLAINTEXT, mechanism PLAIN, and
SASL_USER with SASL_PASSWORD.
"""

import hashlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from jars import find_java, resolve

from headrace.errors import Unreachable
from headrace.log.embedded.files import locked

__all__ = ["KAFKA_VERSION", "SASL_PASSWORD", "SASL_USER", "Broker", "resolve_jars", "run_broker"]

KAFKA_VERSION = "4.3.1"
SASL_USER = "alice"
SASL_PASSWORD = "rabbit-hole"

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 20
ARCHIVE_TIMEOUT_S = 120  # Java writes the archive when it ends
START_ATTEMPTS = 3  # another process may take a free port before the broker does
SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"

_ARCHIVE, _FORMATTED = "classes.jsa", "formatted"
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}="{password}";
log.dirs={data}
num.partitions=4
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=100
log.cleaner.backoff.ms=50
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
"""


def resolve_jars() -> Path:
    """Return the folder of Kafka's jars. Unreachable: they are not cached and cannot be had."""
    coordinates = [f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}"]
    return resolve(f"kafka-{KAFKA_VERSION}", coordinates, with_dependencies=True)


class Broker:
    """One broker and its folder; it can be stopped and started again, on the same ports."""

    def __init__(self, folder: Path, jars: Path, *options: str) -> None:
        self._folder = folder
        self._options = options  # of Java
        self.data = folder / "data"  # Kafka's: a folder <topic>-<partition> for each partition
        self._class_path = f"{jars}/*"
        self._settings = folder / "server.properties"
        self._output = folder / "broker.out"
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = ""
        self.sasl_bootstrap = ""

    def choose_ports(self) -> None:
        """Choose ports that are free now."""
        plain, sasl, controller = _free_ports(3)
        self.bootstrap, self.sasl_bootstrap = f"127.0.0.1:{plain}", f"127.0.0.1:{sasl}"
        self._settings.write_text(
            _SETTINGS.format(
                plain=plain,
                sasl=sasl,
                controller=controller,
                data=self.data,
                user=SASL_USER,
                password=SASL_PASSWORD,
            )
        )

    def format(self) -> None:
        """Make the empty data folder. Unreachable."""
        run = subprocess.run(
            self._command("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c"),
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
        )
        if run.returncode != 0:
            raise Unreachable(f"{self.data}: Kafka cannot format it: {run.stdout}{run.stderr}")

    def start(self) -> None:
        """Start the process and return once it answers. Unreachable: it ended, or never did."""
        assert self._process is None, "it runs already"
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka"), stdout=output, stderr=output, cwd=self._folder
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._answers():
            if self._process.poll() is None and time.monotonic() < deadline:
                continue
            self.stop()
            raise Unreachable(
                f"{self.bootstrap}: the broker did not start; its last words: "
                f"{self._output.read_text(errors='replace')[-2000:]}"
            )

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the process and wait for that; without one, do nothing."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _command(self, main: str, *arguments: str) -> list[str]:
        java = [str(find_java()), *SMALL_JVM, *self._options, "-cp", self._class_path]
        return [*java, main, *arguments, str(self._settings)]

    def _answers(self) -> bool:
        # A client that finds no broker waits up to a second before it tries again, so a new one is
        # made each time; its own wait is what paces the loop.
        client = AdminClient(
            {"bootstrap.servers": self.bootstrap, "reconnect.backoff.max.ms": 100, "log_level": 0}
        )
        try:
            return bool(client.list_topics(timeout=0.5).brokers)
        except KafkaException:
            return False


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:  # all are held until all are known, so that no two are the same
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def run_broker(jars: Path) -> Iterator[Broker]:
    """Run a broker in a temporary folder while the block lasts. Unreachable: it does not start."""
    prepared = _prepare(jars)
    with tempfile.TemporaryDirectory(prefix="headrace-kafka-") as folder:
        broker = Broker(Path(folder), jars, f"-XX:SharedArchiveFile={prepared / _ARCHIVE}")
        for attempt in range(1, START_ATTEMPTS + 1):
            broker.choose_ports()
            shutil.rmtree(broker.data, ignore_errors=True)
            shutil.copytree(prepared / _FORMATTED, broker.data)
            try:
                broker.start()
                break
            except Unreachable:
                if attempt == START_ATTEMPTS:
                    raise
        try:
            yield broker
        finally:
            broker.stop()


def _prepare(jars: Path) -> Path:
    """Return the folder with the archive and the formatted folder; made once for a Java."""
    java = find_java().resolve()
    made_of = (java, java.stat().st_mtime_ns, SMALL_JVM, _SETTINGS, CLUSTER_ID)
    digest = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]
    prepared = jars.parent / f"prepared-{digest}"
    if prepared.is_dir():
        return prepared
    with locked(jars.parent / "lock"):
        if not prepared.is_dir():
            staging = jars.parent / "preparing"
            shutil.rmtree(staging, ignore_errors=True)  # of one that died: we hold the lock
            staging.mkdir()
            with tempfile.TemporaryDirectory(prefix="headrace-kafka-") as folder:
                _prepare_in(staging, Path(folder), jars)
            staging.rename(prepared)
    return prepared


def _prepare_in(staging: Path, folder: Path, jars: Path) -> None:
    formatting = Broker(folder, jars)
    formatting.choose_ports()
    formatting.format()
    shutil.copytree(formatting.data, staging / _FORMATTED)
    # A Java that makes no archive leaves none, and one that finds none does without.
    archiving = Broker(folder, jars, f"-XX:ArchiveClassesAtExit={staging / _ARCHIVE}")
    archiving.choose_ports()
    archiving.start()
    archiving.stop(ARCHIVE_TIMEOUT_S)
