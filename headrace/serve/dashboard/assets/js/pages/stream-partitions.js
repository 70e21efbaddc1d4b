/** The partitions of a stream: how far each is read, its clock, and whether it is idle. */

import { clock, count, duration, moment } from "../format.js";
import { live } from "../live.js";
import { toneOf } from "../parts/state.js";
import { Table } from "../parts/table.js";

const number = (name, label, value, text = (row) => count(value(row))) => ({ name, label, kind: "number", value, text });

const behindText = (us) => (us === null ? "–" : duration(live.status.taken_us - us));

/** Idle: a marker moved the clock last. At its end: read, and waiting. Else it is reading. */
const stateOf = (row) => (row.idle ? "idle" : row.lag_records > 0 ? "reading" : "read to its end");

export const partitionTable = (name) => {
  const table = new Table({
    caption: `Partitions of ${name}`,
    noun: "partition",
    testid: "partitions",
    keyOf: (row) => String(row.partition),
    columns: [
      number("partition", "Partition", (row) => row.partition),
      { name: "state", label: "State", text: stateOf, tag: (row) => toneOf(row.idle ? "idle" : row.lag_records > 0 ? "building" : "live") },
      number("lag", "Lag, records", (row) => row.lag_records),
      number("position", "Position", (row) => row.position),
      number("end", "End", (row) => row.end_offset),
      { name: "clock", label: "Clock (UTC)", kind: "time", value: (row) => row.clock_us, text: (row) => momentText(row.clock_us) },
      { name: "watermark", label: "Watermark (UTC)", kind: "time", value: (row) => row.watermark_us, text: (row) => momentText(row.watermark_us) },
      number("behind", "Behind the clock", (row) => (row.watermark_us === null ? null : -row.watermark_us), (row) => behindText(row.watermark_us)),
      number("delay", "Delay", (row) => row.delay_us, (row) => duration(row.delay_us)),
    ],
  });
  return { element: table.element, update: (partitions) => table.update(partitions) };
};

/** The date is left out where it is today's. */
const momentText = (us) => {
  if (us === null) return "–";
  const today = moment(live.status.taken_us).slice(0, 10);
  return moment(us).startsWith(today) ? clock(us) : moment(us);
};
