/**
 * The rows of a view, folded from its changes: after every `settle` they are the view at a commit.
 */

export class Fold {
  columns = [];
  key = [];
  version = "";
  /** @type {Map<string, {key: string, row: any, closed: boolean, gone: boolean}>} */
  #entries = new Map();

  get size() {
    return this.#entries.size;
  }

  /** Forget all rows: a snapshot follows. */
  reset({ columns, key, version }) {
    this.columns = columns;
    this.key = key;
    this.version = version;
    this.#entries.clear();
  }

  /**
   * Apply changes. An updated row leaves and comes back within a commit: it is only marked until
   * then, so that it keeps its place.
   */
  apply(changes) {
    for (const change of changes) {
      const key = JSON.stringify(change.key);
      const entry = this.#entries.get(key);
      if (change.sign < 0) {
        if (entry) entry.gone = true;
      } else if (entry) {
        Object.assign(entry, { row: change.row ?? entry.row, closed: change.closed, gone: false });
      } else if (change.sign > 0) {
        this.#entries.set(key, { key, row: change.row, closed: change.closed, gone: false });
      }
    }
  }

  /** The commit is whole: rows that left and did not come back are gone. */
  settle() {
    for (const [key, entry] of this.#entries) if (entry.gone) this.#entries.delete(key);
  }

  rows() {
    return [...this.#entries.values()].filter((entry) => !entry.gone);
  }
}
