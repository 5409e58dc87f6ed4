// The walker: what can be acted on, and what is there to read.
const INTERACTIVE = new Set(['button', 'link', 'checkbox', 'radio', 'switch', 'textbox', 'searchbox', 'combobox', 'listbox',
  'option', 'slider', 'spinbutton', 'tab', 'menuitem', 'menuitemcheckbox', 'menuitemradio', 'treeitem', 'gridcell',
  'scrollbar']);
const ANNOUNCED = new Set(['dialog', 'alertdialog', 'alert', 'progressbar', 'meter']);
const MAX_CONTROLS = 10000;
const MAX_LINES = 5000;
const NAME_MAX = 4096;
// CARD_MAX is how much text a control may hold and still say it by its name alone.
const CARD_MAX = 400;

// listRole says in which role an element is listed as a control; empty: not at all.
const listRole = (el, tag, pointer) => {
  switch (tag) {
    case 'button': case 'input': case 'select': case 'textarea': case 'a': case 'area': case 'summary': case 'dialog':
    case 'progress': case 'meter': {
      if (tag === 'input' && el.type === 'hidden') return '';
      const role = roleOf(el);
      return role === 'generic' && !pointer ? '' : role;
    }
    default:
  }
  if (pointer && el.textContent.length > CARD_MAX) pointer = false;
  if (!el.hasAttributes()) return pointer ? 'generic' : '';
  const given = attr(el, 'role');
  if (given) {
    const role = roleOf(el);
    if (INTERACTIVE.has(role) || ANNOUNCED.has(role)) return role;
  }
  if (isEditingHost(el) && !(el.parentElement && el.parentElement.isContentEditable)) return roleOf(el);
  if (tag === 'html' || tag === 'body') return '';
  if (pointer || el.hasAttribute('onclick') || (el.hasAttribute('tabindex') && el.tabIndex >= 0)) {
    return given ? roleOf(el) : 'generic';
  }
  return '';
};

class Walk {
  constructor() {
    this.controls = [];
    this.lines = [];
    this.line = '';
    this.free = false; // the line has words of its own, not only a control's
    this.left = 0;
    this.leftLines = 0;
    this.active = activeDeep();
    this.modals = modalNow();
    this.step = step();
  }

  breakLine() {
    const t = squeeze(this.line);
    if (t && this.free) {
      if (this.lines.length < MAX_LINES) this.lines.push(cut(t, NAME_MAX)); else this.leftLines += 1;
    }
    this.line = '';
    this.free = false;
  }

  words(text, c) {
    if (!c.shown || c.behind) return;
    const plain = c.pre ? text.split('\n') : [text];
    plain.forEach((t, i) => {
      if (i) this.breakLine();
      this.line += t;
      if (!c.inside && t.trim()) this.free = true;
    });
  }

  list(el, role, c) {
    if (this.controls.length >= MAX_CONTROLS) { this.left += 1; return; }
    const r = rectOf(el);
    if (r.width <= 0 || r.height <= 0) return;
    const name = nameOf(el, role);
    const o = { id: refOf(el, role, name, this.step), role, name: cut(name, NAME_MAX), states: statesOf(el, role, this.active, c.off || offByItself(el)),
      box: [r.left, r.top, r.width, r.height], depth: c.depth };
    if (c.behind) o.states.push('inert');
    const v = valueOf(el, role);
    if (v) Object.assign(o, v);
    this.controls.push(o);
    if (el.localName === 'select' && el.options.length > 1) {
      const all = Array.from(el.options, (x) => squeeze(x.label));
      this.options = { name, all };
    }
  }

  // visit walks one element; c is what holds for it from above.
  visit(el, c) {
    const tag = tagOf(el);
    if (tag === 'script' || tag === 'style' || tag === 'noscript' || tag === 'template' || tag === 'br') {
      if (tag === 'br') this.breakLine();
      return;
    }
    const style = getComputedStyle(el);
    const display = style.display;
    if (display === 'none' || style.contentVisibility === 'hidden') return;
    const shown = style.visibility === 'visible';
    const pointing = style.cursor === 'pointer';
    let behind = c.behind || el.inert === true || attr(el, 'aria-hidden') === 'true';
    if (this.modals && tag === 'dialog' && el.matches(':modal')) behind = false;
    const role = shown ? listRole(el, tag, pointing && !c.pointing && !c.inside) : '';
    const inline = display.startsWith('inline') || display === 'contents';
    if (display === 'table-cell') this.line += this.line.trim() ? ' | ' : ''; else if (!inline) this.breakLine();
    const off = c.off || attr(el, 'aria-disabled') === 'true' || (tag === 'button' && el.disabled);
    const next = { shown, behind, pointing, off, inside: c.inside, depth: c.depth, pre: style.whiteSpace.startsWith('pre') };
    if (role) {
      this.list(el, role, next);
      next.depth = c.depth + 1;
      if (!ANNOUNCED.has(role) && el.textContent.length <= CARD_MAX) next.inside = true;
    }
    if (!SILENT_TAGS.has(tag) && tag !== 'input' && !(role && isEditingHost(el))) {
      for (const child of childrenOf(el)) this.child(child, next);
    } else if (tag === 'select' && this.options) {
      this.lines.push(cut('Options of ' + this.options.name + ': ' + this.options.all.join(' | '), NAME_MAX));
    }
    this.options = null;
    if (!inline && display !== 'table-cell') this.breakLine();
    else if (display !== 'inline') this.line += ' ';
  }

  child(node, c) {
    if (node.nodeType === 3) { if (node.data) this.words(node.data, c); return; }
    if (node.nodeType !== 1) return;
    try {
      this.visit(node, c);
    } catch { /* an element that defends itself is left out */ }
  }
}

const geometry = () => ({ w: innerWidth, h: innerHeight, x: scrollX, y: scrollY, dpr: devicePixelRatio, doc: DOC,
  title: document.title, url: location.href });

// snapshot answers as one string: many small objects cross to the host slowly.
const snapshot = () => {
  watchTypes();
  const w = new Walk();
  if (document.documentElement) {
    w.child(document.body || document.documentElement, { shown: true, behind: w.modals !== null, inside: false, pointing: false, pre: false, off: false, depth: 0 });
    w.breakLine();
  }
  return JSON.stringify({ doc: DOC, geometry: geometry(), controls: w.controls, text: w.lines, left: w.left,
    leftText: w.leftLines, secrets: allSecrets() });
};
