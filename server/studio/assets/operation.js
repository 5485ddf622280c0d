// Operations: what takes long runs on the server, says how far it is, and can be cancelled.

import * as api from './api.js';
import * as exact from './exact.js';

export const ended = new Set(['Completed', 'Faulted', 'Canceled']);

// number asks for the number of an operation to come.
export async function number(db, signal) { return (await api.get(api.raven(db, 'operations/next-operation-id'), {signal})).Id; }

// state returns the state of an operation, or null if it has not begun.
export async function state(db, id, signal) {
  const [one] = (await exact.get(api.at('/jay/v1/operations', {database: db, id}), {signal})).operations;
  return one ? {Status: one.status, Progress: one.progress, Result: one.result} : null;
}

// watch calls on(state) now and then until the operation has ended, and returns its last state.
export async function watch(db, id, on, signal, every = 250) {
  for (let failed = 0; ; ) {
    try {
      const now = await state(db, id, signal);
      failed = 0;
      if (now) {
        on(now);
        if (ended.has(now.Status)) return now;
      }
    } catch (error) {
      if (error.name === 'AbortError' || error.kind !== 'offline' || ++failed > 40) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, every));
    if (signal?.aborted) throw new DOMException('', 'AbortError');
  }
}

// kill ends an operation.
export function kill(db, id) { return api.send('POST', api.raven(db, 'operations/kill', {id})); }

// reason is why an operation has failed.
export function reason(state) { return state.Result?.Message ?? 'The log of the server says why.'; }
