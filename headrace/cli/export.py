"""`headrace export`: all rows of a view, at one commit, in a file."""

import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO, TYPE_CHECKING, Annotated

import typer

from headrace.cli.folder import ProjectOption, find_config
from headrace.cli.text.output import JsonOption, show_json, show_text
from headrace.errors import UsageError
from headrace.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export"]


class FileFormat(StrEnum):
    """How the file is written."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"


def export(
    view: Annotated[str, typer.Argument(help="The view, or VIEW.errors for its errors.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    format: Annotated[
        FileFormat | None, typer.Option("--format", help="By default as the file is called.")
    ] = None,
    project: ProjectOption = None,
    json: JsonOption = False,
) -> None:
    """Write all rows of a view to a file, however many there are, as they are at one commit."""
    form = format or _form_of(output)
    config = find_config(project)
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output}: there is no folder {output.absolute().parent}; make it first")
    import pyarrow as pa

    from headrace.cli.question import ask_desk
    from headrace.serve.exporting import COMMIT, POSITION, VIEW

    with TemporaryFile(dir=output.absolute().parent) as rows:
        ask_desk(config, lambda desk: desk.export_view(rows, view))
        rows.seek(0)
        with pa.ipc.open_stream(rows) as reader:
            told = {name.decode(): text.decode() for name, text in reader.schema.metadata.items()}
            written = _write(reader, output, form)
    name, commit = told[VIEW.decode()], int(told[COMMIT.decode()])
    position = told[POSITION.decode()]
    if json:
        found = {"view": name, "rows": written, "commit": commit, "position": position}
        show_json({**found, "file": str(output), "bytes": output.stat().st_size})
    else:
        at = f" ({position})" if position else ""
        show_text(f"{counted(written, 'row')} of {name} at commit {commit}{at} in {output}")


def _form_of(output: Path) -> FileFormat:
    try:
        return FileFormat(output.suffix[1:].lower())
    except ValueError:
        known = ", ".join(FileFormat)
        raise UsageError(
            f"{output}: name it .parquet, .csv or .arrow, or give --format: {known}"
        ) from None


def _write(reader: "pa.RecordBatchReader", output: Path, form: FileFormat) -> int:
    """Write the file whole or not at all, and return how many rows it has."""
    folder = output.absolute().parent
    with NamedTemporaryFile(dir=folder, prefix=f".{output.name}.", delete=False) as file:
        part = Path(file.name)
        try:
            rows = _WRITERS[form](reader, file)
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            part.unlink()
            raise
    part.replace(output)
    return rows


def _write_parquet(reader: "pa.RecordBatchReader", file: IO[bytes]) -> int:
    from pyarrow import parquet

    from headrace.cli.sql import check_parquet

    check_parquet(reader.schema)
    rows = 0
    with parquet.ParquetWriter(file, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _write_csv(reader: "pa.RecordBatchReader", file: IO[bytes]) -> int:
    from headrace.serve.queries.forms import Form, encoded

    rows = 0

    def batches() -> Iterator["pa.RecordBatch"]:
        nonlocal rows
        for batch in reader:
            rows += batch.num_rows
            yield batch

    for piece in encoded(Form.CSV, reader.schema, batches()):
        file.write(piece)
    return rows


def _write_arrow(reader: "pa.RecordBatchReader", file: IO[bytes]) -> int:
    import pyarrow as pa

    rows = 0
    with pa.ipc.new_file(file, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


_WRITERS = {
    FileFormat.PARQUET: _write_parquet,
    FileFormat.CSV: _write_csv,
    FileFormat.ARROW: _write_arrow,
}
