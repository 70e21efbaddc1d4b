"""Answer a query in this process: where no engine runs, so that there is none to harm."""

import io
import time

from headrace.errors import QueryRefused
from headrace.serve.queries.answer import Answer
from headrace.serve.queries.forms import Form, encoded
from headrace.serve.queries.limits import QueryLimits
from headrace.store.base import Store

__all__ = ["answer_here"]


def answer_here(store: Store, sql: str, *, form: Form, max_rows: int) -> Answer:
    """Answer one reading statement; its positions are not told. QueryRefused, TableNotFound."""
    began = time.monotonic()
    most = QueryLimits.answer_bytes
    with store.open() as snapshot:
        commit = snapshot.commits()
        table = snapshot.query(sql, max_rows=max_rows)
    if table.nbytes > most:
        raise QueryRefused(
            f"the answer has {table.nbytes} bytes, {most} is the most; ask for fewer rows or "
            f"columns"
        )
    content = b"".join(encoded(form, table.schema, table.to_batches()))
    return Answer(
        form=form,
        columns=[{"name": field.name, "type": str(field.type)} for field in table.schema],
        rows=table.num_rows,
        commit=commit,
        positions={},
        position="",
        milliseconds=(time.monotonic() - began) * 1000,
        content_bytes=len(content),
        file=io.BytesIO(content),
    )
