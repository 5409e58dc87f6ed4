// States and values of elements.
const TEXT_TYPES = new Set(['text', 'search', 'url', 'tel', 'email', 'password', 'number', '']);
const SET_TYPES = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);
const VALUE_MAX = 16384;

// kindOf says how text gets into an element: text, set, select, rich or not at all.
const kindOf = (el) => {
  const tag = el.localName;
  if (tag === 'textarea') return 'text';
  if (tag === 'select') return 'select';
  if (tag === 'input') return TEXT_TYPES.has(el.type) ? 'text' : SET_TYPES.has(el.type) ? 'set' : '';
  return el.isContentEditable ? 'rich' : '';
};
const editingHost = (el) => {
  let host = el;
  while (host.parentElement && host.parentElement.isContentEditable) host = host.parentElement;
  return host;
};

const FORM_TAGS = new Set(['button', 'input', 'select', 'textarea', 'option', 'optgroup', 'fieldset']);
// offByItself: disabled natively, by its fieldset or by its own mark.
const offByItself = (el) => (FORM_TAGS.has(el.localName) && el.matches(':disabled')) || attr(el, 'aria-disabled') === 'true';
const isDisabled = (el) => {
  if (offByItself(el)) return true;
  for (let n = el; n && n.nodeType === 1; n = parentOf(n)) {
    if (attr(n, 'aria-disabled') === 'true') return true;
    if (n !== el && n.localName === 'button' && n.disabled) return true;
  }
  return false;
};
const isReadOnly = (el) => (('readOnly' in el && el.readOnly === true) || attr(el, 'aria-readonly') === 'true');

const modalNow = () => {
  const open = document.querySelectorAll('dialog:modal');
  return open.length ? open : null;
};
// isBehind: the element cannot be reached, because it is inert or a modal dialog is in front.
const isBehind = (el, modals = modalNow()) => {
  for (let n = el; n && n.nodeType === 1; n = parentOf(n)) {
    if (n.inert) return true;
    if (modals && Array.prototype.includes.call(modals, n)) return false;
  }
  return modals !== null;
};
const isHiddenFromReaders = (el) => {
  for (let n = el; n && n.nodeType === 1; n = parentOf(n)) if (attr(n, 'aria-hidden') === 'true') return true;
  return false;
};

// statesOf lists the states; off is whether the element is disabled.
const statesOf = (el, role, active, off) => {
  const s = [];
  const tag = el.localName;
  if (off) s.push('disabled');
  else if (el.tabIndex >= 0 || isEditingHost(el)) s.push('focusable');
  if (el === active) s.push('focused');
  const checked = attr(el, 'aria-checked');
  if (tag === 'input' && (el.type === 'checkbox' || el.type === 'radio')) {
    if (el.indeterminate) s.push('mixed'); else if (el.checked) s.push('checked');
  } else if (checked === 'true') s.push('checked'); else if (checked === 'mixed') s.push('mixed');
  if (attr(el, 'aria-pressed') === 'true') s.push('pressed');
  const open = tag === 'summary' && el.parentElement && el.parentElement.localName === 'details'
    ? String(el.parentElement.open) : attr(el, 'aria-expanded');
  if (open === 'true') s.push('expanded'); else if (open === 'false') s.push('collapsed');
  if (attr(el, 'aria-selected') === 'true' || (tag === 'option' && el.selected)) s.push('selected');
  if (isReadOnly(el)) s.push('readonly');
  if (el.required === true || attr(el, 'aria-required') === 'true') s.push('required');
  if (attr(el, 'aria-invalid') === 'true' || (FORM_TAGS.has(tag) && el.willValidate && !el.validity.valid && el.matches(':user-invalid'))) s.push('invalid');
  if (tag === 'textarea' || (role === 'textbox' && el.isContentEditable)) s.push('multiline');
  if (isSecret(el)) s.push('protected');
  const current = attr(el, 'aria-current');
  if (current && current !== 'false') s.push('current');
  return s;
};

// richText is what an editor holds as plain text: a block begins a line, a <br>
// ends one, and the <br> that only keeps an empty block open counts as nothing.
const richText = (host) => {
  let out = '';
  let begun = false;
  let pending = false; // a block boundary waits for the next content
  const put = (s) => {
    if (pending && begun) out += '\n';
    pending = false;
    begun = true;
    out += s;
  };
  const endsBlock = (node) => {
    for (let n = node; n !== host; n = n.parentNode) {
      if (n !== node && isBlock(n)) return true;
      for (let s = n.nextSibling; s; s = s.nextSibling) if (s.nodeType !== 3 || s.data.trim()) return s.nodeType === 1 && isBlock(s);
    }
    return true;
  };
  const visit = (node, pre) => {
    if (node.nodeType === 3) {
      let t = node.data.replace(/\ufeff/g, '');
      if (!pre) t = t.replace(/[ \t\r\n\f]+/g, ' ');
      if (t && (pre || t !== ' ' || (begun && !pending))) put(t);
      return;
    }
    if (node.nodeType !== 1) return;
    if (node.localName === 'br') { put(endsBlock(node) ? '' : '\n'); return; }
    const style = getComputedStyle(node);
    if (style.display === 'none') return;
    const block = isBlock(node);
    if (block) pending = true;
    for (const c of node.childNodes) visit(c, /^(pre|break)/.test(style.whiteSpace));
    if (block) pending = true;
  };
  const pre = /^(pre|break)/.test(getComputedStyle(host).whiteSpace);
  for (const c of host.childNodes) visit(c, pre);
  return out.replace(/\u00a0/g, ' ');
};

// valueOf is what a field holds: null where it has no value, {secret} where nobody may know.
const valueOf = (el, role) => {
  const tag = el.localName;
  if (isSecret(el)) return { secret: true };
  let v = null;
  if (tag === 'textarea') v = el.value;
  else if (tag === 'select') v = Array.from(el.selectedOptions, (o) => squeeze(o.label)).join('\n');
  else if (tag === 'input') {
    if (el.type === 'file') v = Array.from(el.files || [], (f) => f.name).join('\n');
    else if (TEXT_TYPES.has(el.type) || SET_TYPES.has(el.type)) v = el.value;
  } else if (isEditingHost(el)) v = richText(el);
  else if (tag === 'progress' || tag === 'meter') v = String(el.value);
  else if (role === 'slider' || role === 'progressbar' || role === 'spinbutton') {
    v = attr(el, 'aria-valuetext') || attr(el, 'aria-valuenow');
  }
  if (v === null) return null;
  return v.length > VALUE_MAX ? { v: v.slice(0, VALUE_MAX), cut: true } : { v };
};
