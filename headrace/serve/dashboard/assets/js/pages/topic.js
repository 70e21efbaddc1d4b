/** A topic: its partitions and newest records. */

import { ApiError, getJson } from "../api.js";
import { h, replace } from "../dom.js";
import { bytes, count, counted } from "../format.js";
import { live } from "../live.js";
import { empty, failed, loading, panel } from "../parts/panel.js";
import { recordsPart, topicRecords } from "../parts/records.js";
import { Table } from "../parts/table.js";
import { hrefOf } from "../router.js";

const POLL_MS = 3_000;
const number = (name, label, value) => ({ name, label, kind: "number", value, text: (row) => count(value(row)) });

export const topicPage = ({ main, scope, name }) => {
  const readers = h("p", { class: "soft" });
  const table = new Table({
    caption: `Partitions of ${name}`,
    noun: "partition",
    keyOf: (row) => String(row.partition),
    columns: [
      number("partition", "Partition", (row) => row.partition),
      number("first", "First offset", (row) => row.first_offset),
      number("end", "End offset", (row) => row.end_offset),
      number("offsets", "Offsets", (row) => row.end_offset - row.first_offset),
    ],
    testid: "partitions",
  });
  const partitions = panel({ title: "Partitions", flush: true }, loading());
  const records = panel({ title: "Newest records", flush: true }, recordsPart({ path: topicRecords(name), scope, none: "This topic has no records.", tone: "late" }).element);
  main.append(h("div", { class: "page-head" }, h("h1", { data: { testid: "page-name" } }, h("span", { class: "kind" }, "topic "), name), readers), h("div", { class: "stack" }, records.element, partitions.element));

  const drawReaders = () => {
    const found = (live.definitions?.streams ?? []).filter((each) => each.topic === name);
    replace(readers, found.length > 0 ? ["read by ", found.flatMap((each, index) => [index > 0 && ", ", h("a", { href: hrefOf("stream", each.name) }, each.name)])] : "");
  };
  scope.listen(live, "definitions", drawReaders);
  drawReaders();
  scope.every(
    POLL_MS,
    async (signal) => {
      const { topics } = await getJson("/v1/topics", { signal });
      const found = topics.find((each) => each.name === name);
      if (!found) return void replace(partitions.body, empty("There is no such topic, or none yet."));
      if (partitions.body.firstChild !== table.element) replace(partitions.body, table.element);
      const size = found.bytes === null || found.bytes === undefined ? "" : bytes(found.bytes);
      table.update(found.partitions, { note: [counted(found.records, "record"), size].filter(Boolean).join(", ") });
    },
    (error) => {
      if (error instanceof ApiError && partitions.body.firstChild !== table.element) replace(partitions.body, failed(error));
    },
  );
  return name;
};
