// Where the server is on its host.

// baseOf returns the path below which the server is, from the address of a module of the studio: '' for a server
// at the root of its host, /admin/db for one whose studio is at /admin/db/studio/.
export function baseOf(url) { return /^(.*)\/studio\/assets\/[0-9a-f]{16}\/[^/]+$/.exec(new URL(url).pathname)?.[1] ?? ''; }

export const base = baseOf(import.meta.url);
