// Addresses and pages. Each page has an address below /studio/, made from the table in
// routes.js; back and forward work as everywhere, and a link is a plain <a href>.

import {base} from './base.js';

export const root = base + '/studio';

// compile makes a function from a path such as /db/:db/doc that returns its parameters, or null.
function compile(path) {
  const names = [];
  const pattern = new RegExp('^' + path.replace(/:(\w+)/g, (_, name) => { names.push(name); return '([^/]+)'; }) + '/?$');
  return (given) => {
    const found = pattern.exec(given);
    if (!found) return null;
    try { return Object.fromEntries(names.map((name, i) => [name, decodeURIComponent(found[i + 1])])); } catch { return null; }
  };
}

// match finds the route of a path below /studio. It is here for tests, too.
export function match(routes, path) {
  for (const route of routes) {
    const params = (route.match ??= compile(route.path))(path);
    if (params) return {route, params};
  }
  return null;
}

// address writes the address of a route: address('/db/:db/doc', {db: 'shop'}, {id: 'a/1'}).
export function address(path, params = {}, query = {}) {
  const filled = path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(params[name]));
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '')).toString();
  return root + filled + (search === '' ? '' : '?' + search);
}

// Router shows the page of the address. show(route, params, query) is called for each new one;
// leave() is asked before a page goes, and may refuse; pending() says whether it would ask. leaving() runs
// before the address changes, unless the back button has changed it already.
export class Router {
  constructor(routes, {show, leave, pending, missing, leaving = () => {}}) {
    Object.assign(this, {routes, show, leave, pending, missing, leaving, position: 0, silent: false});
  }

  start() {
    this.position = history.state?.position ?? 0;
    history.replaceState({...history.state, position: this.position}, '');
    addEventListener('popstate', (event) => this.#moved(event));
    addEventListener('click', (event) => this.#clicked(event));
    this.run();
  }

  // run shows the page of the address as it is.
  run() {
    const path = location.pathname.slice(root.length) || '/';
    const found = match(this.routes, path);
    const query = new URLSearchParams(location.search);
    if (found) this.show(found.route, found.params, query);
    else this.missing(path);
  }

  // go moves to another address. It resolves to false if the page that is shown did not want to be left.
  async go(href, {replace = false, force = false} = {}) {
    if (!force && !await this.leave()) return false;
    this.leaving();
    this.#write(href, replace);
    this.run();
    return true;
  }

  // note changes the query of the address without showing the page anew: its state is in the address, so
  // that it can be shared and loaded again. With push the back button returns to the state before.
  note(values, {push = false} = {}) {
    const query = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(values)) {
      if (value === null || value === undefined || value === '' || value === false) query.delete(name);
      else query.set(name, value);
    }
    const text = query.toString();
    const href = location.pathname + (text === '' ? '' : '?' + text);
    if (href !== location.pathname + location.search) this.#write(href, !push);
  }

  #write(href, replace) {
    if (replace) history.replaceState({position: this.position}, '', href);
    else history.pushState({position: ++this.position}, '', href);
  }

  async #moved(event) {
    if (this.silent) { this.silent = false; return; }
    const to = event.state?.position ?? 0;
    const step = to - this.position;
    // The address has changed already: it goes back while the page is asked.
    if (step !== 0 && this.pending()) {
      this.silent = true;
      history.go(-step);
      if (!await this.leave()) return;
      this.position = to;
      this.silent = true;
      addEventListener('popstate', () => this.run(), {once: true});
      history.go(step);
      return;
    }
    this.position = to;
    this.run();
  }

  #clicked(event) {
    if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const a = event.target.closest?.('a[href]');
    if (!a || a.target || a.hasAttribute('download')) return;
    const to = new URL(a.href, location.href);
    if (to.origin !== location.origin || !(to.pathname === root || to.pathname.startsWith(root + '/'))) return;
    if (to.hash && to.pathname === location.pathname && to.search === location.search) return;
    event.preventDefault();
    this.go(to.pathname + to.search);
  }
}
