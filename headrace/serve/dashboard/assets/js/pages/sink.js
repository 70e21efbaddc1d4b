/** A sink: which view it is told of, how far it is, and what it wrote last. */

import { h, replace } from "../dom.js";
import { count, counted } from "../format.js";
import { live } from "../live.js";
import { pauseButton } from "../pausing.js";
import { facts, failed, loading, notice, panel } from "../parts/panel.js";
import { recordsPart, topicRecords } from "../parts/records.js";
import { updateTag } from "../parts/state.js";
import { hrefOf } from "../router.js";
import { notFound, pageHead } from "./heads.js";

export const sinkPage = ({ main, scope, name }) => {
  const sink = () => live.status?.sinks.find((each) => each.name === name);
  const stateOf = () => sink()?.state ?? (sink() ? "live" : undefined);
  const problems = h("div", { class: "notices" });
  const onError = (error) => replace(problems, error && notice("bad", error.message));
  const head = pageHead({ kind: "sink", name, actions: [pauseButton({ kind: "sink", name, state: stateOf, scope, onError })] });
  const told = panel({ title: "How far it is" }, loading());
  const written = panel({ title: "What it wrote last", flush: true }, loading());
  main.append(head.element, h("div", { class: "stack" }, problems, told.element, written.element));
  let following = false;

  const update = () => {
    const found = sink();
    if (!found) return void notFound(main, "sink", name);
    updateTag(head.state, stateOf());
    replace(
      told.body,
      facts([
        ["View", h("a", { href: hrefOf("view", found.view) }, `${found.view}${found.version ? `@${found.version}` : ""}`)],
        ["Topic", h("a", { href: hrefOf("topic", found.topic) }, found.topic)],
        ["Mode", found.mode],
        ["Has all changes up to", `commit ${count(found.told)}`],
        ["Waiting", counted(found.rows, "row")],
      ]),
    );
    if (following) return;
    following = true;
    replace(written.body, recordsPart({ path: topicRecords(found.topic), scope, none: "It has written nothing yet." }).element);
  };
  scope.listen(live, "status", update);
  if (live.status) update();
  else if (live.error) replace(told.body, failed(live.error));
  return name;
};
