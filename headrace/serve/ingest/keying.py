"""The keys of what producers send: declared by streams, named in the request, or sent along."""

from collections import OrderedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.errors import UsageError
from headrace.model.definitions import Project
from headrace.project.keys import KeyReader, declared_key, field_key
from headrace.project.row_keys import RowKeyReader
from headrace.serve.ingest.decoding import Sent

__all__ = ["KeyReaders", "delete_rows", "read_keys"]

#: A reader learns the shapes of what it reads; so few requests name a key of their own that more
#: of them need not be kept.
_MAX_NAMED = 32


class KeyReaders:
    """What reads the keys of one topic's records. To be used by one thread at a time."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._project: Project | None = None
        self._declared: KeyReader | RowKeyReader | None = None
        self._named: OrderedDict[str, KeyReader] = OrderedDict()

    def of(self, project: Project, named: str | None) -> KeyReader | RowKeyReader | None:
        """Return what reads the key that a request names, or else the declared one.

        None: no stream declares one. UsageError: it cannot be read.
        """
        if named is not None:
            return self._of_name(named)
        if project is not self._project:
            try:
                self._declared = declared_key(project.streams, self._topic)
            except UsageError as error:
                raise UsageError(
                    f"{error} By HTTP: pass key=FIELD, or send keys along with envelope=true."
                ) from error
            self._project = project
        return self._declared

    def _of_name(self, named: str) -> KeyReader:
        reader = self._named.pop(named, None)
        if reader is None:
            try:
                reader = field_key(named)
            except UsageError as error:
                raise UsageError(f"key={named[:100]}: {error.__cause__ or error}") from error
        self._named[named] = reader
        if len(self._named) > _MAX_NAMED:
            self._named.popitem(last=False)
        return reader


def delete_rows(topic: str, sent: Sent, reader: object, keyed: pa.RecordBatch) -> pa.RecordBatch:
    """Return records without the values of those that delete a row. UsageError: there is no row."""
    if sent.gone is None:
        return keyed
    if not getattr(reader, "deletes", False):
        raise UsageError(
            f"{topic}: no table of format 'upsert' reads this topic, so no row can be deleted. "
            f"Send the record that says it."
        )
    keys, values = keyed.column("key"), keyed.column("value")
    lacking = np.flatnonzero(pc.and_(sent.gone, pc.is_null(keys)).to_numpy(zero_copy_only=False))
    if len(lacking):
        assert isinstance(reader, RowKeyReader)
        raise UsageError(
            f"record {lacking[0] + 1}: to delete a row send its primary key, {reader.place}"
        )
    values = pc.if_else(sent.gone, pa.scalar(None, pa.binary()), values)
    return keyed.set_column(1, "value", values)


def read_keys(sent: list[Sent], reader: KeyReader | RowKeyReader | None) -> list[pa.RecordBatch]:
    """Return the records of several bodies with their keys: sent along, or else read.

    They are read together, since a query takes 2 ms to set up and 1 µs for a record.
    """
    if reader is None:
        return [each.records for each in sent]
    values = [_unkeyed(each) for each in sent]
    found = reader(pa.concat_arrays(values))
    batches, start = [], 0
    for each, own in zip(sent, values, strict=True):
        keys = found.slice(start, len(own))
        start += len(own)
        if each.keyed is not None:
            missing = pc.invert(each.keyed)
            keys = pc.replace_with_mask(each.records.column("key"), missing, keys)
        batches.append(each.records.set_column(0, "key", keys))
    return batches


def _unkeyed(sent: Sent) -> pa.Array:
    values = sent.records.column("value")
    return values if sent.keyed is None else values.filter(pc.invert(sent.keyed))
