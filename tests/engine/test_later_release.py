"""An engine that finds a later release's definitions in the ledger says so and touches nothing.

Method: a definition is held with a canonical form of a later version; starting an engine, asking
for the status and auditing are refused in one line, and the store is as it was. No Spark is needed:
the refusal comes before it would be.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from shop import PER_MINUTE, STREAM

from headrace.engine.engine import Engine
from headrace.errors import DefinitionUnreadable
from headrace.ledger.definitions import hold_stream, hold_view
from headrace.ledger.entries import MAIN, Holding
from headrace.log import EmbeddedLog
from headrace.observe.audit import audit, export_of
from headrace.observe.status import take_status
from headrace.project.settings import Settings
from headrace.sql import parse_project
from headrace.store.base import Store
from headrace.store.opening import open_store

PROJECT = parse_project({"shop.sql": STREAM + PER_MINUTE})


def later(holding: Holding) -> Holding:
    forms = [json.dumps(json.loads(form) | {"canonical": 3}) for form in holding.forms]
    return replace(holding, forms=tuple(forms))


def seen(store: Store) -> Any:
    with store.open() as snapshot:
        return snapshot.holdings(), snapshot.units(), snapshot.commits()


def test_what_a_later_release_wrote_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    store = open_store(tmp_path / "store.duckdb")
    epoch = store.begin_epoch()
    [stream], [view] = PROJECT.streams, PROJECT.views
    held = [hold_stream(stream, MAIN), hold_view(view, [stream], MAIN)]
    store.hold(epoch, [later(each) for each in held], {MAIN: {}})
    before, topics = seen(store), log.topics()
    no_spark: Any = None
    engine = Engine(PROJECT, log, store, no_spark)
    with pytest.raises(DefinitionUnreadable, match="canonical form 3, and this release reads"):
        engine.start()
    engine.close()
    with store.open() as snapshot, pytest.raises(DefinitionUnreadable, match="canonical form 3"):
        take_status("shop", snapshot, log, Settings())
    with pytest.raises(DefinitionUnreadable, match="canonical form 3") as error:
        audit(log, export_of(store), no_spark)
    assert "\n" not in str(error.value)
    assert (seen(store), log.topics()) == (before, topics)
    store.hold(epoch, held, {})  # nobody took over: the epoch of before may still write
    store.close()
    log.close()
