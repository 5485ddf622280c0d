// What tools such as axe look for, as far as the browser's own tree of accessibility does not say it: the Go side
// asks that for names. It returns a list of problems of what is seen now.
(async () => {
  const problems = [];
  const say = (node, text) => problems.push(`${text}: ${describe(node)}`);
  const describe = (node) => {
    const path = [];
    for (let n = node; n?.tagName && path.length < 4; n = n.parentElement) {
      path.unshift(n.tagName.toLowerCase() + (n.id ? '#' + n.id : '') + [...n.classList].map((c) => '.' + c).join(''));
    }
    return path.join(' > ') + ' ' + JSON.stringify((node.textContent || node.getAttribute('aria-label') || '').trim().slice(0, 50));
  };
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

  // What a dialog covers is not there.
  const modal = [...document.querySelectorAll('dialog[open]')].filter((d) => d.matches(':modal')).pop();
  const scope = modal ?? document.documentElement;
  const all = [scope, ...scope.querySelectorAll('*')];
  const seen = (node) => {
    if (!node.checkVisibility({opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true})) return false;
    const box = node.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && getComputedStyle(node).clipPath === 'none';
  };

  // ---- The document
  if (!document.documentElement.lang) say(document.documentElement, 'no language');
  if (!document.title.trim()) say(document.documentElement, 'no title');
  const ids = new Map();
  for (const node of document.querySelectorAll('[id]')) ids.set(node.id, [...(ids.get(node.id) ?? []), node]);
  for (const [id, nodes] of ids) if (nodes.length > 1) say(nodes[1], `the id ${id} is there ${nodes.length} times`);
  for (const attribute of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'aria-activedescendant', 'aria-owns', 'for']) {
    for (const node of scope.querySelectorAll(`[${attribute}]`)) {
      for (const id of node.getAttribute(attribute).split(/\s+/)) if (id && !ids.has(id)) say(node, `${attribute} names ${id}, which is not there`);
    }
  }
  for (const node of scope.querySelectorAll('[tabindex]')) if (node.tabIndex > 0) say(node, 'a positive tabindex');

  // ---- Landmarks and headings
  if (!modal) {
    if ([...document.querySelectorAll('main, [role=main]')].filter(seen).length !== 1) say(document.body, 'not exactly one main');
    const navs = [...document.querySelectorAll('nav, [role=navigation]')].filter(seen);
    for (const nav of navs) if (!nav.getAttribute('aria-label') && !nav.getAttribute('aria-labelledby')) say(nav, 'a navigation without a name');
    if (![...document.querySelectorAll('header, [role=banner]')].some(seen)) say(document.body, 'no banner');
  }
  let level = modal ? 1 : 0;
  const headings = [...scope.querySelectorAll('h1, h2, h3, h4, h5, h6, [role=heading]')].filter((n) => n.checkVisibility());
  if (!modal && headings.filter((n) => n.tagName === 'H1').length !== 1) say(document.body, `${headings.filter((n) => n.tagName === 'H1').length} headings of level 1, want one`);
  for (const node of headings) {
    const own = Number(node.getAttribute('aria-level') ?? node.tagName[1]);
    if (own > level + 1) say(node, `a heading of level ${own} after one of level ${level}`);
    level = own;
    if (!node.textContent.trim()) say(node, 'an empty heading');
  }

  // ---- Contrast
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext('2d', {willReadFrequently: true, colorSpace: 'srgb'});
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
  const canvasColor = () => matchMedia('(prefers-color-scheme: dark)').matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const background = (node) => {
    const layers = [];
    for (let n = node; n; n = n.parentElement) {
      const style = getComputedStyle(n);
      if (style.backgroundImage.includes('gradient') && n !== document.documentElement) return null; // not known
      const color = rgba(style.backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reduceRight((below, layer) => over(layer, below), canvasColor());
  };
  const luminance = ([r, g, b]) => [r, g, b].map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const faded = (node) => { let o = 1; for (let n = node; n; n = n.parentElement) o *= Number(getComputedStyle(n).opacity); return o; };
  const disabled = (node) => !!node.closest(':disabled, [aria-disabled=true]') || !!node.closest('label')?.control?.disabled;
  let texts = 0;
  const check = (node, color, style, what) => {
    if (disabled(node)) return;
    const paint = rgba(color);
    if (paint[3] === 0) return; // a layer below shows the text
    const back = background(node);
    if (!back) return;
    texts++;
    const got = ratio(over([paint[0], paint[1], paint[2], paint[3] * faded(node)], back), back);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const need = size >= 24 || bold && size >= 18.66 ? 3 : 4.5;
    if (got < need - 0.005) say(node, `${what}contrast ${got.toFixed(2)}, want ${need} (${color} on rgb(${back.slice(0, 3).map(Math.round)}))`);
  };
  for (const node of all) {
    if (!seen(node) || node.closest('svg') && node.tagName !== 'text' && node.tagName !== 'tspan' || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(node.tagName)) continue;
    const style = getComputedStyle(node);
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (own) check(node, node.tagName === 'text' || node.tagName === 'tspan' ? (style.fill === 'none' ? style.color : style.fill) : style.color, style, '');
    if (['INPUT', 'TEXTAREA', 'SELECT'].includes(node.tagName) && !['checkbox', 'radio', 'range', 'file', 'color'].includes(node.type)) {
      if (node.value) check(node, style.color, style, '');
      else if (node.placeholder) check(node, getComputedStyle(node, '::placeholder').color, style, 'placeholder: ');
    }
  }
  if (texts === 0) say(scope, 'no text was looked at');

  // ---- Width
  const root = document.scrollingElement;
  if (root.scrollWidth > innerWidth + 1) say(root, `the page is ${root.scrollWidth} px wide in a window of ${innerWidth}`);
  const main = document.querySelector('main');
  if (!modal && main && main.scrollWidth > main.clientWidth + 1) say(main, `what it holds is ${main.scrollWidth} px wide, with room for ${main.clientWidth}`);
  const frame = [document.body, root, main];
  const scrolls = (node) => { for (let n = node.parentElement; n; n = n.parentElement) if (['auto', 'scroll', 'hidden', 'clip'].includes(getComputedStyle(n).overflowX) && !frame.includes(n)) return true; return false; };
  for (const node of all) {
    const box = node.getBoundingClientRect();
    if (seen(node) && (box.right > innerWidth + 1 || box.left < -1) && !scrolls(node)) { say(node, `reaches from ${Math.round(box.left)} to ${Math.round(box.right)} px in a window of ${innerWidth}`); break; }
  }

  // ---- Focus: each stop of Tab shows that it has it
  const look = (node) => { const s = getComputedStyle(node); return [s.outlineStyle === 'none' || parseFloat(s.outlineWidth) === 0 ? '' : s.outline, s.boxShadow, s.borderColor, s.backgroundColor, s.textDecoration].join('|'); };
  const looks = (node) => [node, node.parentElement, node.parentElement?.parentElement, node.parentElement?.parentElement?.parentElement].map((n) => n ? look(n) : '').join('\n') + (node.labels ? [...node.labels].map(look) : '');
  const before = document.activeElement;
  const scrolled = [...document.querySelectorAll('*')].filter((n) => n.scrollTop).map((n) => [n, n.scrollTop]);
  const stops = all.filter((n) => n.matches('a[href], button, input, select, textarea, [tabindex], [contenteditable], summary') && n.tabIndex >= 0 && !n.disabled && seen(n)).slice(0, 120);
  for (const node of stops) {
    document.activeElement?.blur();
    const plain = looks(node);
    node.focus({preventScroll: true, focusVisible: true});
    if (document.activeElement === node && looks(node) === plain) say(node, 'does not show that it has the focus');
  }
  if (before && before !== document.body) before.focus({preventScroll: true}); else document.activeElement?.blur();
  for (const [node, top] of scrolled) node.scrollTop = top;
  return problems;
})()
