// The palette: all commands, found by some of their letters, and a jump to any document by its ID.

import {dialog, fill, h} from './ui.js';

// score says how well text is found by letters, in their order: 0 for not at all. It is here for tests, too.
export function score(text, letters) {
  text = text.toLowerCase();
  letters = letters.toLowerCase().replace(/\s+/g, '');
  let from = 0, points = 1;
  for (const letter of letters) {
    const at = text.indexOf(letter, from);
    if (at < 0) return 0;
    points += at === 0 || text[at - 1] === ' ' ? 3 : at === from ? 2 : 0;
    from = at + 1;
  }
  return points + 1 / text.length;
}

// openPalette shows commands of {text, hint, run}; open(id) shows a document, if there is a database.
export function openPalette(commands, {db, open}) {
  let found = [], chosen = 0;
  const list = h('ul', {class: 'palette-list', role: 'listbox', id: 'palette-list', 'aria-label': 'Commands'});
  const input = h('input', {type: 'text', class: 'palette-input', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-label': 'Command or ID', autofocus: true, autocomplete: 'off', spellcheck: 'false',
    placeholder: open ? `A command, or the ID of a document in ${db}` : 'A command'});
  return dialog('', (close) => {
    const run = (item) => { close(); item?.run(); };
    const draw = () => {
      fill(list, found.map((item, i) => h('li', {role: 'option', id: `palette-${i}`, 'aria-selected': String(i === chosen), on: {click: () => run(item), pointermove: () => { if (chosen !== i) { chosen = i; draw(); } }}},
        h('span', null, item.text), item.hint && h('span', {class: 'muted'}, item.hint))), found.length === 0 && h('li', {class: 'muted'}, 'Nothing is called so.'));
      input.setAttribute('aria-activedescendant', found.length ? `palette-${chosen}` : '');
      list.querySelector('[aria-selected=true]')?.scrollIntoView({block: 'nearest'});
    };
    const search = () => {
      const text = input.value.trim();
      found = commands.map((c) => ({...c, points: score(c.text, text)})).filter((c) => c.points > 0);
      if (text) found.sort((a, b) => b.points - a.points);
      if (text && open) {
        const jump = {text: `Open document ${text}`, hint: 'by its ID', run: () => open(text)};
        if (/[/|-]/.test(text)) found.unshift(jump); else found.push(jump);
      }
      chosen = 0;
      draw();
    };
    input.addEventListener('input', search);
    input.addEventListener('keydown', (event) => {
      const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
      if (step && found.length) { chosen = (chosen + step + found.length) % found.length; draw(); }
      else if (event.key === 'Enter') run(found[chosen]);
      else return;
      event.preventDefault();
    });
    search();
    return h('div', {class: 'palette'}, input, list);
  }, {label: 'All commands', wide: true});
}
