/** A sink: which view it is told of, how far it is, and what it wrote last. */

import { h, replace, setAttribute, setText } from "../dom.js";
import { count, counted } from "../format.js";
import { live } from "../live.js";
import { pauseButton } from "../pausing.js";
import { facts, failed, loading, notice, panel } from "../parts/panel.js";
import { recordsPart, topicRecords } from "../parts/records.js";
import { updateTag } from "../parts/state.js";
import { hrefOf } from "../router.js";
import { Scope } from "../scope.js";
import { pageHead, presence } from "./heads.js";

export const sinkPage = ({ main, scope, name }) => {
  const sink = () => live.status?.sinks.find((each) => each.name === name);
  const stateOf = () => sink()?.state ?? (sink() ? "live" : undefined);
  const problems = h("div", { class: "notices" });
  const onError = (error) => replace(problems, error && notice("bad", error.message));
  const head = pageHead({ kind: "sink", name, actions: [pauseButton({ kind: "sink", name, state: stateOf, scope, onError })] });
  const told = panel({ title: "How far it is" }, loading());
  const written = panel({ title: "What it wrote last", flush: true }, loading());
  const setKnown = presence(main, "sink", name, head.element, h("div", { class: "stack" }, problems, told.element, written.element));
  const known = sinkFacts();
  let topic = null;
  let inner = null;

  const update = () => {
    const found = sink();
    if (!setKnown(found !== undefined)) return;
    updateTag(head.state, stateOf());
    known.update(found);
    if (topic === found.topic) return;
    topic = found.topic;
    inner?.close();
    inner = new Scope(scope);
    replace(told.body, known.element);
    replace(written.body, recordsPart({ path: topicRecords(topic), scope: inner, none: "It has written nothing yet." }).element);
  };
  scope.listen(live, "status", update);
  if (live.status) update();
  else if (live.error) replace(told.body, failed(live.error));
  return name;
};

/** What is known of a sink. Its elements stay, so that a link keeps the focus while the numbers change. */
const sinkFacts = () => {
  const [view, topic] = [h("a"), h("a")];
  const [mode, told, waiting] = [h("span"), h("span"), h("span")];
  return {
    element: facts([["View", view], ["Topic", topic], ["Mode", mode], ["Has all changes up to", told], ["Waiting", waiting]]),
    update: (found) => {
      setText(view, `${found.view}${found.version ? `@${found.version}` : ""}`);
      setAttribute(view, "href", hrefOf("view", found.view));
      setText(topic, found.topic);
      setAttribute(topic, "href", hrefOf("topic", found.topic));
      setText(mode, found.mode);
      setText(told, `commit ${count(found.told)}`);
      setText(waiting, counted(found.rows, "row"));
    },
  };
};
