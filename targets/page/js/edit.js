// Fields: focus, selection, value.
const caretEnd = (el) => {
  if (el.isContentEditable) {
    const range = document.createRange();
    range.selectNodeContents(el);
    range.collapse(false);
    const sel = getSelection();
    sel.removeAllRanges();
    sel.addRange(range);
    return;
  }
  try {
    const n = el.value.length;
    el.setSelectionRange(n, n);
  } catch {
    // Number and email fields have no selection of their own; the frame's has.
    getSelection().modify('move', 'forward', 'documentboundary');
  }
};
const selectAll = (el) => {
  if (el.isContentEditable) getSelection().selectAllChildren(el);
  else el.select();
};

// focus puts the focus on an element: mode all selects what it holds, end puts
// the caret behind it unless the element had the focus already, keep does neither.
const focus = (h, mode) => {
  let el = held(h);
  if (!el) return { gone: true };
  if (el.isContentEditable && !isEditingHost(el)) {
    const host = editingHost(el);
    if (activeDeep() !== host) host.focus({ preventScroll: true });
  } else if (activeDeep() !== el) {
    el.focus({ preventScroll: true });
    if (mode === 'end' && activeDeep() === el) caretEnd(el);
  }
  if (mode === 'all') selectAll(el);
  const a = activeDeep();
  return { ok: a === el || (el.isContentEditable && a === editingHost(el)), on: sketch(a) };
};

const hasFocus = (h) => {
  const el = held(h);
  const a = activeDeep();
  return !!el && (a === el || (el.isContentEditable && a === editingHost(el)));
};

// field tells what a field holds and where the caret is.
const field = (h) => {
  const el = held(h);
  if (!el) return { gone: true };
  const kind = kindOf(el);
  const o = { kind, secret: isSecret(el) };
  if (kind === 'rich') o.value = richText(el);
  else if (kind === 'select') { o.value = squeeze(Array.from(el.selectedOptions, (x) => x.label).join('\n')); o.raw = el.value; }
  else if (kind) o.value = el.value;
  if (kind === 'text') {
    o.start = el.selectionStart;
    o.end = el.selectionEnd;
  }
  if (o.secret && kind) keepSecret(el);
  return o;
};

// put sets the value of a field that keys cannot fill (a date, a colour, a range,
// a list) by the element's own setter, and says so to the page.
const put = (h, text) => {
  const el = held(h);
  if (!el) return { gone: true };
  if (el.localName === 'select') {
    const want = squeeze(text);
    const o = Array.from(el.options).find((x) => x.value === text) || Array.from(el.options).find((x) => squeeze(x.label) === want);
    if (!o) return { none: true };
    if (el.multiple) for (const x of el.options) x.selected = x === o; else o.selected = true;
  } else {
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(el, text);
  }
  el.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
  el.dispatchEvent(new Event('change', { bubbles: true }));
  return { ok: true };
};

// focused is what has the focus in this frame.
const focused = () => {
  const el = activeDeep();
  if (!el || el === document.body || el === document.documentElement) return null;
  const o = describe(el);
  o.check = check(el, '');
  o.frame = el.localName === 'iframe' || el.localName === 'frame';
  o.has = document.hasFocus();
  return o;
};
