// Keys. A key is written as 'ctrl+s' (⌘ on a Mac), 'g d' (one after the other), '/', '?' or 'escape'. Those
// of a page end with it. Keys without ctrl are not heard while one types, but for escape.

const typing = (node) => node?.closest?.('input:not([type=checkbox]):not([type=radio]):not([type=button]), textarea, select, [contenteditable=""], [contenteditable=true], [contenteditable="plaintext-only"]');

// chord writes the key of an event as we do.
export function chord(event) {
  let key = event.key === ' ' ? 'space' : event.key.toLowerCase();
  if (event.ctrlKey || event.metaKey) key = (event.shiftKey ? 'shift+' : '') + key, key = 'ctrl+' + key;
  else if (event.shiftKey && key.length > 1) key = 'shift+' + key;
  if (event.altKey) key = 'alt+' + key;
  return key;
}

export class Keys {
  constructor() {
    this.groups = []; // of {title, keys}
    this.first = '';
  }

  start() { addEventListener('keydown', (event) => this.#pressed(event)); }

  // add binds keys: a list of {key, text, run, hidden, typing: also while one types}; run may return false to let the
  // browser have the key. It returns a function that unbinds them. What was added later comes first.
  add(title, keys) {
    const group = {title, keys};
    this.groups.unshift(group);
    return () => { this.groups = this.groups.filter((g) => g !== group); };
  }

  #pressed(event) {
    if (event.isComposing || event.defaultPrevented || ['Control', 'Shift', 'Alt', 'Meta'].includes(event.key)) return;
    if (document.querySelector('dialog[open]')) return; // a dialog has its own
    const pressed = chord(event);
    const inText = typing(event.target);
    if (inText && !pressed.startsWith('ctrl+') && !pressed.startsWith('alt+') && pressed !== 'escape' && pressed !== 'f1') return;
    const whole = this.first === '' ? pressed : this.first + ' ' + pressed;
    this.first = '';
    clearTimeout(this.timer);
    // After "g", "n" is that of "g n" wherever it is bound, before that of "n".
    for (const key of new Set([whole, pressed])) {
      for (const one of this.groups.flatMap(({keys}) => keys)) {
        if (one.key !== key || one.run(event) === false) continue;
        event.preventDefault();
        return;
      }
    }
    if (!inText && this.groups.some(({keys}) => keys.some(({key}) => key.startsWith(pressed + ' ')))) {
      this.first = pressed;
      this.timer = setTimeout(() => { this.first = ''; }, 1500);
      event.preventDefault();
    }
  }
}
