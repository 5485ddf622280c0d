// The feed of changes, and live queries. They are read as streams rather than by EventSource, which does not say why a feed was
// refused: that changes are gone must be shown, and not passed over. When the connection breaks it is made again,
// behind the last change that was seen, so that none is missing.

import * as api from './api.js';

// Events splits a stream of server-sent events. push(text) calls event({id, data}) for each that is complete,
// and position(id) for an id without one.
export class Events {
  constructor(event, position = () => {}, comment = () => {}) { Object.assign(this, {event, position, comment, rest: '', id: '', data: [], moved: false}); }
  push(text) {
    this.rest += text;
    let from = 0;
    for (let end; (end = this.rest.indexOf('\n', from)) >= 0; from = end + 1) this.#line(this.rest.slice(from, this.rest[end - 1] === '\r' ? end - 1 : end));
    this.rest = this.rest.slice(from);
  }
  #line(line) {
    if (line === '') {
      if (this.data.length) this.event({id: this.id, data: this.data.join('\n')});
      else if (this.moved) this.position(this.id);
      this.data = [];
      this.moved = false;
    } else if (line.startsWith(':')) this.comment(line.slice(1).trim());
    else if (line === 'id:' || line.startsWith('id: ')) { this.id = line.slice(4); this.moved = true; }
    else if (line.startsWith('data: ')) this.data.push(line.slice(6));
  }
}

// follow reads the changes of a database until signal ends: filter is {collection, prefix, id}, since is '' for all, 'now' or
// a token. on = {change(change, token), state(kind, error)}: kinds are those of stream.
export function follow(db, filter, since, on, signal, options) {
  const path = api.jay(db, 'changes', {...filter, positions: true});
  return stream(path, since, {event: ({id, data}) => on.change(JSON.parse(data), id), state: on.state}, signal, options);
}

// live reads the events of a live query until signal ends: parameters is a JSON object as text. on = {group(events), state(kind, error)}: a group has
// the events up to a "current", each as the text that came. What has come of a group when the connection breaks is dropped: it comes again.
export function live(db, query, parameters, on, signal, options) {
  let events = [];
  return stream(api.jay(db, 'live', {query, parameters}), '', {
    event: ({data}) => {
      if (JSON.parse(data).type !== 'current') return events.push(data);
      const group = events;
      events = [];
      on.group(group);
    },
    state: (kind, error) => {
      events = [];
      on.state(kind, error);
    },
  }, signal, options);
}

// stream reads server-sent events until signal ends, and goes on behind the last id when the connection breaks. on = {event({id, data}), state(kind,
// error)}: kinds are 'connecting', 'live', 'interrupted' (it goes on by itself), 'gone' and 'refused' (it does not).
async function stream(path, since, on, signal, {wait = delay} = {}) {
  for (let broken = 0; !signal.aborted;) {
    on.state(broken ? 'interrupted' : 'connecting');
    try {
      const response = await api.request('GET', `${path}&since=${encodeURIComponent(since)}`, {signal, headers: {Accept: 'text/event-stream'}});
      on.state('live');
      broken = 0;
      const events = new Events(({id, data}) => { since = id || since; on.event({id, data}); }, (id) => { since = id; });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        events.push(value);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 410) return on.state('gone', error);
      if (error.status >= 400 && error.status < 500 && error.status !== 429) return on.state('refused', error);
    }
    if (signal.aborted) return;
    broken++;
    on.state('interrupted');
    await wait(Math.min(10_000, 250 * 2 ** Math.min(broken, 6)), signal);
  }
}

function delay(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => { clearTimeout(timer); resolve(); }, {once: true});
  });
}

// Window keeps the newest changes, so many at the most. While it is held, what comes waits, so that nothing moves under
// the pointer; release() lets it in. Of what waits, the newest are kept, too, and all are counted.
export class Window {
  constructor(most) { Object.assign(this, {most, rows: [], waiting: [], newer: 0, dropped: 0, held: false}); }
  add(change) {
    if (this.held) {
      this.newer++;
      this.#keep(this.waiting, change);
      return;
    }
    this.#keep(this.rows, change);
  }
  #keep(list, change) {
    list.unshift(change);
    if (list.length > this.most) { this.dropped += list.length - this.most; list.length = this.most; }
  }
  release() {
    const all = [...this.waiting, ...this.rows];
    this.dropped += Math.max(0, all.length - this.most);
    this.rows = all.slice(0, this.most);
    this.waiting = [];
    this.newer = 0;
  }
  clear() { this.rows = []; this.waiting = []; this.newer = 0; this.dropped = 0; }
}
