// A window on the rows of a list that may have millions: some pages that follow one
// another, of which those far from what is shown are dropped. A row's cursor, or its ID, says where pages go on. It has no DOM, so that it can be tested.
//
// Nothing skips rows: pages begin behind a row (after), at an ID (from), at about a part of
// all (at), or at the end (reverse). So the number of the first row is known only when the window has been at
// the beginning or at the end; elsewhere it is a guess, and exact is false.

export class Rows {
  // fetchPage({after, from, at, reverse, pageSize}) resolves to {rows, next, about}; total() is how many rows there are, or null;
  // changed({added, dropped}) is called when rows came before the first one, or went.
  constructor(fetchPage, {pageSize = 100, most = 600, total = () => null, changed = () => {}} = {}) {
    Object.assign(this, {fetchPage, pageSize, most, total, changed, generation: 0, busy: {}});
    this.#set([], {});
  }

  #set(rows, {atStart = false, atEnd = false, first = 0, exact = atStart}) {
    Object.assign(this, {rows, atStart, atEnd, first, exact});
    this.#settle();
  }

  // settle learns the number of the first row from an end that is in the window.
  #settle() {
    const total = this.total();
    if (this.atStart) Object.assign(this, {first: 0, exact: true});
    else if (this.atEnd && total !== null) Object.assign(this, {first: Math.max(0, total - this.rows.length), exact: true});
  }

  async #open(ask) {
    const generation = ++this.generation;
    this.busy = {};
    const result = await ask();
    if (generation !== this.generation) return false;
    this.#set(result.rows, result);
    return true;
  }

  // start goes to the first rows. It resolves to false if another place was asked for meanwhile, as end does.
  start() {
    return this.#open(async () => {
      const {rows, next} = await this.fetchPage({pageSize: this.pageSize});
      return {rows, atStart: true, atEnd: next === undefined};
    });
  }

  // end goes to the last rows, by walking backwards from the last one.
  end() {
    return this.#open(async () => {
      const {rows, next} = await this.fetchPage({reverse: true, pageSize: this.pageSize});
      return {rows: rows.reverse(), atEnd: true, atStart: next === undefined};
    });
  }

  // place goes to an ID ({from}) or to about a part of all ({at}), with rows above it. It resolves to the number, in the window, of
  // the row that was asked for, or to null if another place was asked for meanwhile.
  async place(where) {
    let index = 0;
    const opened = await this.#open(async () => {
      const below = await this.fetchPage({...where, pageSize: this.pageSize});
      if (below.rows.length === 0) { // behind the last
        const {rows, next} = await this.fetchPage({reverse: true, pageSize: this.pageSize});
        index = Math.max(0, rows.length - 1);
        return {rows: rows.reverse(), atEnd: true, atStart: next === undefined};
      }
      const above = await this.fetchPage({after: cursorOf(below.rows[0]), reverse: true, pageSize: this.pageSize});
      index = above.rows.length;
      const total = this.total();
      return {rows: [...above.rows.reverse(), ...below.rows], atStart: above.next === undefined, atEnd: below.next === undefined,
        first: total === null ? 0 : Math.max(0, Math.round((below.about ?? 0) * total) - index), exact: false};
    });
    return opened ? index : null;
  }

  // more loads the page before ('up') or behind ('down') the window. It does nothing at the end, or while that page is on its way.
  async more(direction) {
    const up = direction === 'up';
    if (this.busy[direction] || this.rows.length === 0 || (up ? this.atStart : this.atEnd)) return false;
    const generation = this.generation;
    this.busy[direction] = true;
    try {
      const edge = cursorOf(this.rows[up ? 0 : this.rows.length - 1]);
      const {rows, next} = await this.fetchPage({after: edge, reverse: up, pageSize: this.pageSize});
      if (generation !== this.generation) return false;
      if (up) {
        this.rows.unshift(...rows.reverse());
        this.first -= rows.length;
        this.atStart = next === undefined;
        const tooMany = this.rows.length - this.most;
        if (tooMany > 0) { this.rows.length = this.most; this.atEnd = false; }
        this.#settle();
        this.first = Math.max(0, this.first);
        this.changed({added: rows.length, dropped: 0});
      } else {
        this.rows.push(...rows);
        this.atEnd = next === undefined;
        const tooMany = Math.max(0, this.rows.length - this.most);
        if (tooMany > 0) { this.rows.splice(0, tooMany); this.first += tooMany; this.atStart = false; }
        this.#settle();
        this.changed({added: 0, dropped: tooMany});
      }
      return true;
    } finally {
      if (generation === this.generation) this.busy[direction] = false;
    }
  }

  // remove takes rows out that were deleted.
  remove(ids) {
    const before = this.rows.length;
    this.rows = this.rows.filter((row) => !ids.has(row.id));
    return before - this.rows.length;
  }
}

// cursorOf returns with what a page behind a row begins.
export function cursorOf(row) { return row.cursor ?? row.id; }

// shown returns what a cell shows of the text of a value: {text, kind}. A string stands without its quotes, and everything else as it is stored,
// digit by digit. A text that was cut ends with …
export function shown(value) {
  if (value === null || value === undefined) return {text: '', kind: 'none'};
  const first = value[0];
  if (first === '"') {
    if (value.endsWith('…')) return {text: value.slice(1).replace(/\\(["\\/])/g, '$1'), kind: 'text'};
    return {text: JSON.parse(value), kind: 'text'}; // of a string nothing is lost
  }
  if (first === '{' || first === '[') return {text: value, kind: 'tree'};
  return {text: value, kind: first === 't' || first === 'f' || first === 'n' ? 'word' : 'number'};
}
