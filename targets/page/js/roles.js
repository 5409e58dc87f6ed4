// Roles and accessible names, as far as finding and telling elements apart needs them.
const INPUT_ROLES = {
  button: 'button', submit: 'button', reset: 'button', image: 'button', checkbox: 'checkbox', radio: 'radio',
  range: 'slider', number: 'spinbutton', search: 'searchbox', color: 'button', file: 'button',
};
const TAG_ROLES = {
  button: 'button', summary: 'button', textarea: 'textbox', option: 'option', progress: 'progressbar', meter: 'meter',
  dialog: 'dialog', h1: 'heading', h2: 'heading', h3: 'heading', h4: 'heading', h5: 'heading', h6: 'heading',
  nav: 'navigation', main: 'main', aside: 'complementary', article: 'article', ul: 'list', ol: 'list', menu: 'list',
  li: 'listitem', table: 'table', tr: 'row', td: 'cell', th: 'columnheader', fieldset: 'group', details: 'group',
  form: 'form', output: 'status', hr: 'separator', p: 'paragraph', figure: 'figure', optgroup: 'group', iframe: 'iframe',
  tbody: 'rowgroup', thead: 'rowgroup', tfoot: 'rowgroup', search: 'search', video: 'video', audio: 'audio',
};
const tagOf = (el) => (el instanceof HTMLFormElement ? 'form' : el.localName);

const roleOf = (el) => {
  const given = attr(el, 'role');
  if (given) {
    const first = given.trim().split(/\s+/)[0].toLowerCase();
    if (first && first !== 'presentation' && first !== 'none') return first;
  }
  const tag = tagOf(el);
  switch (tag) {
    case 'a': case 'area': return el.hasAttribute('href') ? 'link' : 'generic';
    case 'input': {
      if (el.type === 'hidden') return 'generic';
      const r = INPUT_ROLES[el.type];
      if (r) return r;
      return el.hasAttribute('list') ? 'combobox' : 'textbox';
    }
    case 'select': return el.multiple || el.size > 1 ? 'listbox' : 'combobox';
    case 'img': return attr(el, 'alt') === '' ? 'presentation' : 'img';
    case 'svg': return 'img';
    case 'header': case 'footer': return el.closest('article, aside, main, nav, section') ? 'generic'
      : tag === 'header' ? 'banner' : 'contentinfo';
    case 'section': return el.hasAttribute('aria-label') || el.hasAttribute('aria-labelledby') ? 'region' : 'generic';
    case 'th': return attr(el, 'scope') === 'row' ? 'rowheader' : 'columnheader';
    default: return TAG_ROLES[tag] || (isEditingHost(el) ? 'textbox' : 'generic');
  }
};

const isEditingHost = (el) => {
  const c = attr(el, 'contenteditable');
  return c !== null && c.toLowerCase() !== 'false' && el.isContentEditable;
};

// NAMED_BY_CONTENT are the roles whose words are their name.
const NAMED_BY_CONTENT = new Set(['button', 'link', 'checkbox', 'radio', 'switch', 'tab', 'menuitem', 'menuitemcheckbox',
  'menuitemradio', 'option', 'treeitem', 'heading', 'cell', 'gridcell', 'columnheader', 'rowheader', 'row', 'tooltip',
  'generic', 'paragraph', 'listitem', 'status', 'alert']);
const SILENT_TAGS = new Set(['script', 'style', 'noscript', 'template', 'head', 'title', 'textarea', 'select', 'datalist', 'iframe',
  'object', 'video', 'audio', 'canvas']);

const isBlock = (el) => !getComputedStyle(el).display.startsWith('inline');

// wordsOf is what an element shows as words, whitespace not yet squeezed. What
// is entered into fields is never part of it.
const wordsOf = (el, hiddenToo) => {
  let out = '';
  const add = (node, depth) => {
    if (node.nodeType === 3) { out += node.data; return; }
    if (node.nodeType !== 1 || depth > 60) return;
    const tag = tagOf(node);
    if (SILENT_TAGS.has(tag)) return;
    if (tag === 'br') { out += '\n'; return; }
    if (tag === 'img') { out += ' ' + (attr(node, 'alt') || '') + ' '; return; }
    if (tag === 'input') {
      if (['button', 'submit', 'reset'].includes(node.type)) out += ' ' + buttonValue(node) + ' ';
      return;
    }
    if (!hiddenToo) {
      if (attr(node, 'aria-hidden') === 'true') return;
      const s = getComputedStyle(node);
      if (s.display === 'none' || s.visibility !== 'visible') return;
    }
    const label = depth && attr(node, 'aria-label');
    const gap = depth && isBlock(node) ? ' ' : '';
    out += gap;
    if (label && label.trim()) out += label;
    else if (!(isEditingHost(node) && depth)) for (const c of childrenOf(node)) add(c, depth + 1);
    out += gap;
  };
  if (el.childElementCount === 0 && !el.shadowRoot && !(el instanceof HTMLSlotElement) &&
    !SILENT_TAGS.has(tagOf(el))) return el.textContent || '';
  add(el, 0);
  return out;
};

const buttonValue = (el) => {
  const v = attr(el, 'value');
  if (v !== null) return v;
  return el.type === 'submit' ? 'Submit' : el.type === 'reset' ? 'Reset' : '';
};

// LABELED are the elements that a <label> can be for. A button names itself.
const LABELED = new Set(['input', 'textarea', 'select', 'meter', 'progress', 'output']);
const labelWords = (el) => {
  if (!el.labels || !el.labels.length) return '';
  return squeeze(Array.from(el.labels, (l) => wordsOf(l)).join(' '));
};

const referredWords = (el, name) => {
  const ids = attr(el, name);
  if (!ids) return '';
  const root = el.getRootNode();
  const parts = [];
  for (const id of ids.trim().split(/\s+/)) {
    const ref = root.getElementById ? root.getElementById(id) : null;
    if (ref) parts.push(attr(ref, 'aria-label') || wordsOf(ref, !isVisible(ref)));
  }
  return squeeze(parts.join(' '));
};

const ownName = (el, role) => {
  const tag = tagOf(el);
  switch (tag) {
    case 'input':
      if (el.type === 'image') return attr(el, 'alt') || attr(el, 'value') || '';
      if (['button', 'submit', 'reset'].includes(el.type)) return labelWords(el) || buttonValue(el);
      return labelWords(el);
    case 'textarea': case 'select': case 'meter': case 'progress': case 'output':
      return labelWords(el);
    case 'button': return wordsOf(el) || labelWords(el);
    case 'img': case 'area': return attr(el, 'alt') || '';
    case 'svg': { const t = el.querySelector('title'); return t ? t.textContent : ''; }
    case 'fieldset': { const l = el.querySelector(':scope > legend'); return l ? wordsOf(l) : ''; }
    case 'table': return el.caption ? wordsOf(el.caption) : '';
    case 'figure': { const c = el.querySelector('figcaption'); return c ? wordsOf(c) : ''; }
    case 'iframe': return '';
    default: return NAMED_BY_CONTENT.has(role) && !isEditingHost(el) ? wordsOf(el) : '';
  }
};

const nameOf = (el, role) => {
  const ref = referredWords(el, 'aria-labelledby');
  if (ref) return ref;
  const label = attr(el, 'aria-label');
  if (label && label.trim()) return squeeze(label);
  const own = squeeze(ownName(el, role));
  if (own) return own;
  const title = attr(el, 'title');
  if (title && title.trim()) return squeeze(title);
  return squeeze(attr(el, 'placeholder') || attr(el, 'aria-placeholder') || '');
};

// labelOf is the words of an element's label alone, for the locator of that name.
const labelOf = (el) => referredWords(el, 'aria-labelledby') || squeeze(attr(el, 'aria-label') || '') || labelWords(el);
